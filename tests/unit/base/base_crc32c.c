/* SPDX-License-Identifier: MIT */
#include "base/crc32c.h"
#include "unit_test.h"

TEST(the_checksum_is_castagnolis)
{
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283U);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283U);
    uint8_t zeros[32] = { 0 };
    assert_int_equal(crc32c(0, zeros, sizeof(zeros)), 0x8a9136aaU);
}

TEST(it_does_not_depend_on_how_the_bytes_are_cut)
{
    uint8_t bytes[67];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    uint32_t whole = crc32c(0, bytes, sizeof(bytes)), single = 0;
    for (size_t i = 0; i < sizeof(bytes); i++)
        single = crc32c(single, bytes + i, 1);
    assert_int_equal(single, whole);
    for (size_t cut = 0; cut <= sizeof(bytes); cut++)
        assert_int_equal(crc32c(crc32c(0, bytes, cut), bytes + cut, sizeof(bytes) - cut), whole);
}
