/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/follow/log_tail.h"
#include "unit_test.h"

static uint64_t tail(const char *text, uint64_t lines)
{
    return log_tail_in(text, strlen(text), lines);
}

TEST(the_last_lines_begin_after_a_newline)
{
    assert_int_equal(tail("a\nb\nc\n", 1), 4);
    assert_int_equal(tail("a\nb\nc\n", 2), 2);
    assert_int_equal(tail("a\nb\nc\n", 3), 0);
    assert_int_equal(tail("a\nb\nc\n", 9), 0);
}

TEST(an_unfinished_line_is_a_line)
{
    assert_int_equal(tail("a\nb\nc", 1), 4);
    assert_int_equal(tail("a\n\n", 1), 2);
}

TEST(no_lines_is_the_end)
{
    assert_int_equal(tail("a\nb\n", 0), 4);
    assert_int_equal(tail("", 5), 0);
}
