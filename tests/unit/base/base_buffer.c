/* SPDX-License-Identifier: MIT */
/* The growing run of bytes: what is appended comes back, and who owns it is never in doubt. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "unit_test.h"

TEST(an_empty_buffer_reads_as_an_empty_text)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    assert_string_equal(buffer_text(&buffer), "");
    assert_int_equal(buffer.length, 0);
}

TEST(bytes_come_back_as_they_were_appended)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    for (int i = 0; i < 10000; i++) {
        uint8_t byte = (uint8_t)(i % 251);
        buffer_append(&buffer, &byte, 1);
    }
    assert_int_equal(buffer.length, 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buffer.bytes[i], i % 251);
}

TEST(nul_bytes_are_bytes_like_others)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    buffer_append(&buffer, "a\0b", 3);
    assert_int_equal(buffer.length, 3);
    assert_memory_equal(buffer.bytes, "a\0b", 3);
}

TEST(appending_nothing_changes_nothing)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    buffer_append(&buffer, NULL, 0);
    buffer_append_text(&buffer, "");
    buffer_printf(&buffer, "%s", "");
    assert_int_equal(buffer.length, 0);
}

TEST(formatted_text_longer_than_the_capacity_is_not_cut)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    buffer_printf(&buffer, "%0500d|", 7);
    buffer_printf(&buffer, "%s", "end");
    assert_int_equal(buffer.length, 504);
    assert_string_equal(buffer_text(&buffer) + 499, "7|end");
}

TEST(the_text_does_not_count_its_terminator)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    buffer_append_text(&buffer, "ab");
    (void)buffer_text(&buffer);
    buffer_append_text(&buffer, "c");
    assert_string_equal(buffer_text(&buffer), "abc");
    assert_int_equal(buffer.length, 3);
}

TEST(taking_the_text_leaves_an_empty_buffer)
{
    struct buffer buffer = { 0 };
    buffer_append_text(&buffer, "mine");
    _cleanup_free_ char *text = buffer_take(&buffer);
    assert_string_equal(text, "mine");
    assert_null(buffer.bytes);
    assert_int_equal(buffer.length, 0);
    assert_int_equal(buffer.capacity, 0);
}

TEST(clearing_twice_is_harmless)
{
    struct buffer buffer = { 0 };
    buffer_append_text(&buffer, "x");
    buffer_clear(&buffer);
    buffer_clear(&buffer);
    assert_null(buffer.bytes);
}
