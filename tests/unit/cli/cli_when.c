/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utc.h"
#include "cli/term/when.h"
#include "unit_test.h"

/* Saturday, 2026-11-21 12:30:00 UTC. */
#define NOW_MS INT64_C(1795264200000)

/* The moment as RFC 3339 in UTC. */
static void check_in(const struct when_zone *zone, int64_t now_ms, const char *text, const char *expected)
{
    char utc[64];
    int64_t ms = 0;
    struct error err = { 0 };
    if (when_parse(text, "--begin", now_ms, zone, &ms, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    utc_format(ms, utc, sizeof(utc));
    assert_string_equal(utc, expected);
}

static void check(const char *text, const char *expected)
{
    check_in(&when_utc, NOW_MS, text, expected);
}

static void refuse(const char *text, const char *message)
{
    struct error err = { 0 };
    int64_t ms = 77;
    assert_int_equal(when_parse(text, "--begin", NOW_MS, &when_utc, &ms, &err), -EINVAL);
    assert_string_equal(err.message, message);
    assert_int_equal(ms, 77);
}

TEST(a_time_of_day_is_the_next_one)
{
    check("18:00", "2026-11-21T18:00:00.000Z");
    check("12:30:01", "2026-11-21T12:30:01.000Z");
    check("12:30", "2026-11-22T12:30:00.000Z");
    check("9:05", "2026-11-22T09:05:00.000Z");
}

TEST(a_day_of_the_week_is_the_next_one)
{
    check("Fri 18:00", "2026-11-27T18:00:00.000Z");
    check("sunday 00:00", "2026-11-22T00:00:00.000Z");
    check("Sat 18:00", "2026-11-21T18:00:00.000Z");
    check("Sat 10:00", "2026-11-28T10:00:00.000Z");
    check("tomorrow 9:00", "2026-11-22T09:00:00.000Z");
    check("today 9:00", "2026-11-21T09:00:00.000Z");
    check_in(&when_utc, INT64_C(1795955400000), "tomorrow 9:00", "2026-11-30T09:00:00.000Z");
    check_in(&when_utc, INT64_C(1796041800000), "tomorrow 9:00", "2026-12-01T09:00:00.000Z");
}

TEST(a_span_counts_from_now)
{
    check("+2h", "2026-11-21T14:30:00.000Z");
    check("+90", "2026-11-21T12:31:30.000Z");
    check("+1-00:00:00", "2026-11-22T12:30:00.000Z");
    check("now", "2026-11-21T12:30:00.000Z");
}

TEST(a_date_may_have_a_time_and_an_offset)
{
    check("2026-11-22", "2026-11-22T00:00:00.000Z");
    check("2026-11-22 14:00", "2026-11-22T14:00:00.000Z");
    check("2026-11-22T14:00:05Z", "2026-11-22T14:00:05.000Z");
    check("2026-11-22T14:00:05.250Z", "2026-11-22T14:00:05.000Z");
    check("2026-11-22T14:00+02:00", "2026-11-22T12:00:00.000Z");
    check("2026-11-22T14:00:00-0530", "2026-11-22T19:30:00.000Z");
    check("2028-02-29 00:00", "2028-02-29T00:00:00.000Z");
}

TEST(what_has_no_offset_is_meant_in_the_zone)
{
    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    check_in(&when_local, NOW_MS, "18:00", "2026-11-21T17:00:00.000Z");
    check_in(&when_local, NOW_MS, "2026-07-01 12:00", "2026-07-01T10:00:00.000Z");
    check_in(&when_local, NOW_MS, "2026-07-01T12:00:00Z", "2026-07-01T12:00:00.000Z");
    /* 2026-03-28 12:00 UTC: the clocks change in the coming night. */
    check_in(&when_local, INT64_C(1774699200000), "9:00", "2026-03-29T07:00:00.000Z");
}

TEST(an_hour_that_the_clocks_leave_out_is_refused)
{
    struct error err = { 0 };
    int64_t ms = 0;
    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    assert_int_equal(when_parse("2026-03-29 02:30", "--begin", NOW_MS, &when_local, &ms, &err), -EINVAL);
    assert_string_equal(err.message, "--begin: the time '2026-03-29 02:30' does not exist");
}

static void check_past(const char *text, const char *expected)
{
    char utc[64];
    int64_t ms = 0;
    struct error err = { 0 };
    if (when_parse_past(text, "--since", NOW_MS, &when_utc, &ms, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    utc_format(ms, utc, sizeof(utc));
    assert_string_equal(utc, expected);
}

TEST(a_time_in_the_past_is_the_last_one)
{
    check_past("9:05", "2026-11-21T09:05:00.000Z");
    check_past("12:30", "2026-11-21T12:30:00.000Z");
    check_past("18:00", "2026-11-20T18:00:00.000Z");
    check_past("00:00:00", "2026-11-21T00:00:00.000Z");
    check_past("Fri 18:00", "2026-11-20T18:00:00.000Z");
    check_past("Sat 10:00", "2026-11-21T10:00:00.000Z");
    check_past("Sat 18:00", "2026-11-14T18:00:00.000Z");
    check_past("sunday", "2026-11-15T00:00:00.000Z");
    check_past("Sat", "2026-11-21T00:00:00.000Z");
    check_past("today", "2026-11-21T00:00:00.000Z");
    check_past("yesterday", "2026-11-20T00:00:00.000Z");
    check_past("yesterday 18:00", "2026-11-20T18:00:00.000Z");
    check_past("2h", "2026-11-21T10:30:00.000Z");
    check_past("1-00:00:00", "2026-11-20T12:30:00.000Z");
    check_past("2026-11-01", "2026-11-01T00:00:00.000Z");
    check_past("now", "2026-11-21T12:30:00.000Z");
}

TEST(no_time_in_the_past_is_a_distance_ahead)
{
    struct error err = { 0 };
    int64_t ms = 77;
    assert_int_equal(when_parse_past("+2h", "--since", NOW_MS, &when_utc, &ms, &err), -EINVAL);
    assert_string_equal(err.message, "--since: '+2h' is not a time");
    assert_non_null(strstr(err.hint, "an age, 12h"));
    assert_int_equal(ms, 77);
}

TEST(senseless_times_are_refused)
{
    static const char *const words[] = { "", "25:00", "12:60", "12", "Fri", "Fri 25:00", "Fry 12:00", "+",
        "+x", "12:00x", "2026-11", "2026-11-22 ", "2026-11-22T14:00:00+2", "2026-11-22T14:00:00ZZ",
        "20261122", "2026-11-22T14:00:00.Z", "-2h", "1:2" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct error err = { 0 };
        int64_t ms = 0;
        if (when_parse(words[i], "--begin", NOW_MS, &when_utc, &ms, &err) != -EINVAL)
            fail_msg("'%s' was taken", words[i]);
        assert_non_null(strstr(err.message, "is not a time"));
    }
    refuse("2026-02-30 12:00", "--begin: the time '2026-02-30 12:00' does not exist");
    refuse("2026-13-01", "--begin: the time '2026-13-01' does not exist");
}

TEST(a_bare_span_is_refused_with_what_was_meant)
{
    struct error err = { 0 };
    int64_t ms = 0;
    assert_int_equal(when_parse("2h", "--begin", NOW_MS, &when_utc, &ms, &err), -EINVAL);
    assert_string_equal(err.hint, "for a time from now, use +2h");
    assert_int_equal(when_parse("18", "--begin", NOW_MS, &when_utc, &ms, &err), -EINVAL);
    assert_string_equal(err.hint, "18:00 is a time of day, +18h a time from now");
    assert_int_equal(when_parse("24", "--begin", NOW_MS, &when_utc, &ms, &err), -EINVAL);
    assert_string_equal(err.hint, "for a time from now, use +24");
}
