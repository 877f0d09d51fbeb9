/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/term/time_text.h"
#include "unit_test.h"

static void check(const char *when, const char *now, enum time_style style, const char *expected)
{
    char text[64];
    time_format(time_parse(when), time_parse(now), style, text, sizeof(text));
    assert_string_equal(text, expected);
}

TEST(utc_times_are_read_to_the_millisecond)
{
    assert_int_equal(time_parse("1970-01-01T00:00:01.250Z"), 1250);
    assert_int_equal(time_parse("1970-01-02T00:00:00Z"), 86400000);
}

TEST(junk_is_no_time)
{
    assert_int_equal(time_parse(NULL), 0);
    assert_int_equal(time_parse("yesterday"), 0);
    assert_int_equal(time_parse("2026-11-21T10:00:00+01:00"), 0);
}

TEST(nearer_times_are_shorter)
{
    check("2026-11-21T14:20:05Z", "2026-11-21T20:00:00Z", TIME_ZULU, "14:20:05");
    check("2026-11-20T14:20:05Z", "2026-11-21T20:00:00Z", TIME_ZULU, "Fri 14:20");
    check("2026-10-20T14:20:05Z", "2026-11-21T20:00:00Z", TIME_ZULU, "2026-10-20 14:20");
}

static void check_short(const char *when, const char *now, const char *expected)
{
    char text[64];
    time_format_short(time_parse(when), time_parse(now), TIME_ZULU, text, sizeof(text));
    assert_string_equal(text, expected);
}

TEST(short_times_ahead_need_no_day_for_half_a_day)
{
    check_short("2026-11-21T14:20:05Z", "2026-11-21T20:00:00Z", "14:20");
    check_short("2026-11-22T00:20:00Z", "2026-11-21T23:20:00Z", "00:20");
    check_short("2026-11-22T11:19:00Z", "2026-11-21T23:20:00Z", "11:19");
    check_short("2026-11-22T11:20:00Z", "2026-11-21T23:20:00Z", "Sun 11:20");
    check_short("2026-11-21T23:50:00Z", "2026-11-22T00:10:00Z", "Sat 23:50");
}

TEST(local_times_follow_the_zone)
{
    check("2026-11-21T14:20:05Z", "2026-11-21T20:00:00Z", TIME_LOCAL, "16:20:05");
    check("2026-11-21T14:20:05Z", "2026-11-21T20:00:00Z", TIME_ISO, "2026-11-21T16:20:05+0200");
}

TEST(dates_are_whole_even_today)
{
    char text[64];
    time_format_date(time_parse("2026-11-21T14:20:05Z"), TIME_ZULU, text, sizeof(text));
    assert_string_equal(text, "2026-11-21 14:20");
    time_format_date(time_parse("2026-11-21T14:20:05Z"), TIME_ISO, text, sizeof(text));
    assert_memory_equal(text, "2026-11-2", 9);
    assert_non_null(strchr(text, 'T'));
}

int main(void)
{
    (void)setenv("TZ", "UTC-2", 1);
    return unit_tests_run(NULL, NULL);
}
