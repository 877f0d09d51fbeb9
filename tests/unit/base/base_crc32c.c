/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/crc32c.h"

static void the_checksum_is_castagnolis(void **state)
{
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283U);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283U);
    uint8_t zeros[32] = { 0 };
    assert_int_equal(crc32c(0, zeros, sizeof(zeros)), 0x8a9136aaU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checksum_is_castagnolis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
