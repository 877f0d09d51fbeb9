/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/follow/log_tail.h"
#include "unit_test.h"

static uint64_t tail(const char *text, uint64_t lines)
{
    return log_tail_in(text, strlen(text), lines);
}

static void the_last_lines_begin_after_a_newline(void **state)
{
    (void)state;
    assert_int_equal(tail("a\nb\nc\n", 1), 4);
    assert_int_equal(tail("a\nb\nc\n", 2), 2);
    assert_int_equal(tail("a\nb\nc\n", 3), 0);
    assert_int_equal(tail("a\nb\nc\n", 9), 0);
}

static void an_unfinished_line_is_a_line(void **state)
{
    (void)state;
    assert_int_equal(tail("a\nb\nc", 1), 4);
    assert_int_equal(tail("a\n\n", 1), 2);
}

static void no_lines_is_the_end(void **state)
{
    (void)state;
    assert_int_equal(tail("a\nb\n", 0), 4);
    assert_int_equal(tail("", 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_lines_begin_after_a_newline),
        cmocka_unit_test(an_unfinished_line_is_a_line),
        cmocka_unit_test(no_lines_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
