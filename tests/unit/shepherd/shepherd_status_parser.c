/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "shepherd/status_parser.h"
#include "unit_test.h"

static struct status_parser said;

static int empty(void **state)
{
    said = (struct status_parser){ 0 };
    return 0;
}

#define CASE(name) TEST_WITH(name, empty, NULL)

static bool add(const char *text)
{
    return status_parser_add(&said, 1000, text, strlen(text));
}

CASE(the_latest_of_each_kind_stands)
{
    assert_false(add("PROGRESS=0.1\nSTATUS=epoch 1\nPROGRESS=20%\r\nSTATUS=epoch 2 \n"));
    assert_int_equal(said.latest.has_progress, 1);
    assert_int_equal(said.latest.progress_ppm, 200000);
    assert_string_equal(said.latest.status, "epoch 2");
    assert_int_equal(said.latest.checkpointed_ms, 0);
    assert_true(add("CHECKPOINTED\n"));
    assert_int_equal(said.latest.checkpointed_ms, 1000);
    assert_false(add("STATUS=\n"));
    assert_string_equal(said.latest.status, "");
}

CASE(a_line_may_come_byte_by_byte)
{
    const char *text = "PROGRESS=0.5\nCHECKPOINTED\n";
    size_t n_checkpoints = 0;
    for (const char *p = text; *p != '\0'; p++)
        n_checkpoints += status_parser_add(&said, 7, p, 1);
    assert_int_equal(n_checkpoints, 1);
    assert_int_equal(said.latest.progress_ppm, 500000);
}

CASE(the_last_line_needs_no_newline)
{
    assert_false(add("CHECKPOINTED"));
    assert_true(status_parser_end(&said, 9));
    assert_int_equal(said.latest.checkpointed_ms, 9);
    assert_false(status_parser_end(&said, 10));
    assert_int_equal(said.latest.checkpointed_ms, 9);
}

CASE(junk_changes_nothing)
{
    static const char nul[] = "STATUS=a\0b\nCHECKPOINTED\0\n";
    assert_false(add(
        "\n\n=\nPROGRESS\nPROGRESS=\nPROGRESS=2\nprogress=1\nCHECKPOINTED=1\nCHECKPOINTEDX\n CHECKPOINTED\n"
        "WATCHDOG=1\nMAINPID=1\n\xff\xfe\x01\n"));
    assert_false(status_parser_add(&said, 1, nul, sizeof(nul) - 1));
    assert_int_equal(said.latest.has_progress, 0);
    assert_string_equal(said.latest.status, "");
    assert_int_equal(said.latest.checkpointed_ms, 0);
    assert_false(add("PROGRESS=0.5\nPROGRESS=much\n"));
    assert_int_equal(said.latest.progress_ppm, 500000);
}

CASE(a_line_that_is_too_long_is_passed_over_and_the_next_one_is_not)
{
    static char text[3 * STATUS_LINE_MAX];
    memset(text, 'x', sizeof(text));
    memcpy(text, "STATUS=", 7);
    for (size_t at = 0; at < sizeof(text); at += 1000)
        assert_false(
            status_parser_add(&said, 1, text + at, sizeof(text) - at < 1000 ? sizeof(text) - at : 1000));
    assert_true(add("CHECKPOINTED\nCHECKPOINTED\n")); // the first of them ends the long line
    assert_string_equal(said.latest.status, "");
    /* The longest that is taken. */
    memset(text, ' ', STATUS_LINE_MAX);
    memcpy(text, "STATUS=fits", 11);
    text[STATUS_LINE_MAX] = '\n';
    assert_false(status_parser_add(&said, 1, text, STATUS_LINE_MAX + 1));
    assert_string_equal(said.latest.status, "fits");
    assert_false(status_parser_add(&said, 1, "STATUS=", 7));
    text[STATUS_LINE_MAX - 7] = ' ';
    assert_false(status_parser_add(&said, 1, text, STATUS_LINE_MAX + 1));
    assert_string_equal(said.latest.status, "fits");
}

CASE(a_long_status_is_cut_between_characters)
{
    char line[512] = "STATUS=";
    for (size_t i = 0; i < 100; i++)
        strcat(line, "é");
    strcat(line, "\n");
    assert_false(add(line));
    assert_int_equal(strlen(said.latest.status), SPOOL_STATUS_MAX);
    memmove(line + 8, line + 7, strlen(line + 7) + 1);
    line[7] = 'x';
    assert_false(add(line));
    assert_int_equal(strlen(said.latest.status), SPOOL_STATUS_MAX - 1);
    /* What was there before leaves nothing behind. */
    assert_false(add("STATUS=ab\n"));
    assert_string_equal(said.latest.status, "ab");
}

CASE(a_flood_leaves_the_last_word)
{
    char line[64];
    for (int i = 0; i <= 100000; i++) {
        int n = snprintf(line, sizeof(line), "PROGRESS=%d.%05d\nSTATUS=%d\n", i / 100000, i % 100000, i);
        assert_false(status_parser_add(&said, 1, line, (size_t)n));
    }
    assert_int_equal(said.latest.progress_ppm, 1000000);
    assert_string_equal(said.latest.status, "100000");
}
