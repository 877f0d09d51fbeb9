/* SPDX-License-Identifier: MIT */
/* The growing run of bytes: what is appended comes back, and who owns it is never in doubt. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "unit_test.h"

static void an_empty_buffer_reads_as_an_empty_text(void **state)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    assert_string_equal(buffer_text(&buffer), "");
    assert_int_equal(buffer.length, 0);
}

static void bytes_come_back_as_they_were_appended(void **state)
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

static void nul_bytes_are_bytes_like_others(void **state)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    buffer_append(&buffer, "a\0b", 3);
    assert_int_equal(buffer.length, 3);
    assert_memory_equal(buffer.bytes, "a\0b", 3);
}

static void appending_nothing_changes_nothing(void **state)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    buffer_append(&buffer, NULL, 0);
    buffer_append_text(&buffer, "");
    buffer_printf(&buffer, "%s", "");
    assert_int_equal(buffer.length, 0);
}

static void formatted_text_longer_than_the_capacity_is_not_cut(void **state)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    buffer_printf(&buffer, "%0500d|", 7);
    buffer_printf(&buffer, "%s", "end");
    assert_int_equal(buffer.length, 504);
    assert_string_equal(buffer_text(&buffer) + 499, "7|end");
}

static void the_text_does_not_count_its_terminator(void **state)
{
    _cleanup_buffer_ struct buffer buffer = { 0 };
    buffer_append_text(&buffer, "ab");
    (void)buffer_text(&buffer);
    buffer_append_text(&buffer, "c");
    assert_string_equal(buffer_text(&buffer), "abc");
    assert_int_equal(buffer.length, 3);
}

static void taking_the_text_leaves_an_empty_buffer(void **state)
{
    struct buffer buffer = { 0 };
    buffer_append_text(&buffer, "mine");
    _cleanup_free_ char *text = buffer_take(&buffer);
    assert_string_equal(text, "mine");
    assert_null(buffer.bytes);
    assert_int_equal(buffer.length, 0);
    assert_int_equal(buffer.capacity, 0);
}

static void clearing_twice_is_harmless(void **state)
{
    struct buffer buffer = { 0 };
    buffer_append_text(&buffer, "x");
    buffer_clear(&buffer);
    buffer_clear(&buffer);
    assert_null(buffer.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_reads_as_an_empty_text),
        cmocka_unit_test(bytes_come_back_as_they_were_appended),
        cmocka_unit_test(nul_bytes_are_bytes_like_others),
        cmocka_unit_test(appending_nothing_changes_nothing),
        cmocka_unit_test(formatted_text_longer_than_the_capacity_is_not_cut),
        cmocka_unit_test(the_text_does_not_count_its_terminator),
        cmocka_unit_test(taking_the_text_leaves_an_empty_buffer),
        cmocka_unit_test(clearing_twice_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
