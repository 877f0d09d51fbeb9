/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "cli/term/labelled.h"
#include "unit_test.h"

static struct buffer put;

static int keep(void *arg, const void *bytes, size_t length)
{
    buffer_append(&put, bytes, length);
    return 0;
}

static int refuse(void *arg, const void *bytes, size_t length)
{
    return -EPIPE;
}

static int close_all(void **state)
{
    buffer_clear(&put);
    return 0;
}

#define CASE(name) TEST_WITH(name, NULL, close_all)

static void assert_put(const char *text)
{
    assert_string_equal(put.length > 0 ? buffer_text(&put) : "", text);
}

CASE(only_whole_lines_come_out_each_with_its_label)
{
    _cleanup_(labelled_clear) struct labelled out = { .label = "1", .put = keep };
    assert_int_equal(labelled_take(&out, "on", 2), 0);
    assert_put("");
    assert_int_equal(labelled_take(&out, "e\ntwo\nthr", 9), 0);
    assert_put("1: one\n1: two\n");
    assert_int_equal(labelled_flush(&out), 0);
    assert_put("1: one\n1: two\n1: thr\n");
    assert_int_equal(labelled_flush(&out), 0);
    assert_put("1: one\n1: two\n1: thr\n");
}

CASE(an_endless_line_is_broken)
{
    _cleanup_(labelled_clear) struct labelled out = { .label = "0", .put = keep };
    char piece[4096];
    memset(piece, 'x', sizeof(piece));
    for (size_t i = 0; i < 17; i++)
        assert_int_equal(labelled_take(&out, piece, sizeof(piece)), 0);
    assert_int_equal(put.length, 3 + (64U << 10) + 1);
}

CASE(an_error_of_the_output_is_passed_on)
{
    _cleanup_(labelled_clear) struct labelled out = { .label = "0", .put = refuse };
    assert_int_equal(labelled_take(&out, "line\n", 5), -EPIPE);
}
