/* SPDX-License-Identifier: MIT */
#include "base/terminal.h"
#include "unit_test.h"

TEST(a_head_is_read_as_it_was_written)
{
    static const size_t lengths[] = { 0, 1, 255, 256, 65535, TERMINAL_PAYLOAD_MAX };
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint8_t head[TERMINAL_HEAD_SIZE], type = 0;
        size_t length = 0;
        terminal_head(head, TERMINAL_OUTPUT, lengths[i]);
        assert_true(terminal_read_head(head, &type, &length));
        assert_int_equal(type, TERMINAL_OUTPUT);
        assert_int_equal(length, lengths[i]);
    }
}

TEST(a_frame_above_the_limit_is_refused)
{
    static const uint8_t heads[][TERMINAL_HEAD_SIZE] = { { 'i', 1, 0, 1 }, { 'i', 0xff, 0xff, 0xff } };
    uint8_t type = 0;
    size_t length = 0;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        assert_false(terminal_read_head(heads[i], &type, &length));
}

TEST(numbers_are_big_endian)
{
    uint8_t bytes[8];
    terminal_put(bytes, 8, 0x0102030405060708ULL);
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[7], 8);
    assert_true(terminal_get(bytes, 8) == 0x0102030405060708ULL);
    assert_int_equal(terminal_get(bytes, 2), 0x0102);
}
