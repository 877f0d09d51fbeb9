/* SPDX-License-Identifier: MIT */
/* Moments in Slurm's syntax, ahead (--begin) and in the past (sacct --starttime). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utc.h"
#include "cli/submit/slurm_moment.h"
#include "unit_test.h"

/* Saturday, 2026-11-21 12:30:00 UTC. */
#define NOW_MS INT64_C(1795264200000)

struct row {
    const char *text, *utc;
};

static void check(enum slurm_tense tense, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char utc[64];
        int64_t ms = 0;
        struct error err = { 0 };
        if (slurm_parse_moment("--time", rows[i].text, tense, NOW_MS, &when_utc, &ms, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        utc_format(ms, utc, sizeof(utc));
        if (strncmp(utc, rows[i].utc, strlen(rows[i].utc)) != 0)
            fail_msg("%s is %s, not %s", rows[i].text, utc, rows[i].utc);
    }
}

#define CHECK(tense, rows) check((tense), (rows), sizeof(rows) / sizeof((rows)[0]))

TEST(a_time_of_day_is_todays_in_the_past_and_the_next_one_ahead)
{
    static const struct row past[] = { { "00:00", "2026-11-21T00:00:00" },
        { "12:01am", "2026-11-21T00:01:00" }, { "midnight", "2026-11-21T00:00:00" },
        { "noon", "2026-11-21T12:00:00" }, { "9:30 PM", "2026-11-21T21:30:00" },
        { "today", "2026-11-21T00:00:00" }, { "11:59:58", "2026-11-21T11:59:58" } };
    static const struct row ahead[] = { { "00:00", "2026-11-22T00:00:00" },
        { "16:00", "2026-11-21T16:00:00" }, { "12:30", "2026-11-22T12:30:00" },
        { "midnight", "2026-11-22T00:00:00" }, { "teatime", "2026-11-21T16:00:00" },
        { "fika", "2026-11-21T15:00:00" }, { "elevenses", "2026-11-22T11:00:00" },
        { "4:30PM", "2026-11-21T16:30:00" }, { "12:05:09 am", "2026-11-22T00:05:09" },
        { "tomorrow", "2026-11-22T00:00:00" }, { "tomorrow noon", "2026-11-22T12:00:00" },
        { "noon-tomorrow", "2026-11-22T12:00:00" }, { "10:00 tomorrow", "2026-11-22T10:00:00" } };
    CHECK(SLURM_PAST, past);
    CHECK(SLURM_AHEAD, ahead);
}

TEST(a_day_without_a_year_is_the_last_one_or_the_next_one)
{
    static const struct row past[] = { { "1120", "2026-11-20T00:00:00" }, { "11/20", "2026-11-20T00:00:00" },
        { "11.20", "2026-11-20T00:00:00" }, { "1121", "2026-11-21T00:00:00" },
        { "11/22", "2025-11-22T00:00:00" }, { "11/20-23:00", "2026-11-20T23:00:00" },
        { "1/2", "2026-01-02T00:00:00" }, { "112020", "2020-11-20T00:00:00" },
        { "11/20/24", "2024-11-20T00:00:00" }, { "12/31", "2025-12-31T00:00:00" } };
    static const struct row ahead[] = { { "0102", "2027-01-02T00:00:00" }, { "01/02", "2027-01-02T00:00:00" },
        { "12/24", "2026-12-24T00:00:00" }, { "11/21-13:00", "2026-11-21T13:00:00" },
        { "12/24/26-08:30", "2026-12-24T08:30:00" }, { "122426", "2026-12-24T00:00:00" },
        { "11/21", "2027-11-21T00:00:00" } };
    CHECK(SLURM_PAST, past);
    CHECK(SLURM_AHEAD, ahead);
}

TEST(dates_and_distances_mean_the_same_in_both)
{
    static const struct row rows[] = { { "2026-11-20", "2026-11-20T00:00:00" },
        { "2026-11-20T08:30", "2026-11-20T08:30:00" }, { "2026-11-20T08:30:05", "2026-11-20T08:30:05" },
        { "2026-11-20 08:30", "2026-11-20T08:30:00" }, { "now", "2026-11-21T12:30:00" },
        { "now-1hour", "2026-11-21T11:30:00" }, { "now+2hours", "2026-11-21T14:30:00" },
        { "now+60", "2026-11-21T12:31:00" }, { "now-90min", "2026-11-21T11:00:00" },
        { "now+1week", "2026-11-28T12:30:00" }, { "now-7days", "2026-11-14T12:30:00" },
        { "now + 1 hour", "2026-11-21T13:30:00" }, { "uts1795264100", "2026-11-21T12:28:20" },
        { "2026-11-20T08:30:00Z", "2026-11-20T08:30:00" },
        { "2026-11-20T08:30:00+01:00", "2026-11-20T07:30:00" } };
    CHECK(SLURM_PAST, rows);
    CHECK(SLURM_AHEAD, rows);
}

TEST(what_is_no_moment_is_refused)
{
    static const char *const words[] = { "", "x", "25:00", "12:60", "13:00pm", "0:30am", "02/30", "0230",
        "13/01", "1332", "now+", "now+2parsecs", "now*2", "12:00 13:00", "today tomorrow", "11/", "11/22/2",
        "2026-02-30", "2026-11", "12345", "noon noon", "uts", "utsx", "11/22x" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (int tense = SLURM_AHEAD; tense <= SLURM_PAST; tense++) {
            struct error err = { 0 };
            int64_t ms = 77;
            if (slurm_parse_moment(
                    "--begin", words[i], (enum slurm_tense)tense, NOW_MS, &when_utc, &ms, &err) != -EINVAL)
                fail_msg("'%s' was taken", words[i]);
            assert_int_equal(ms, 77);
        }
}

TEST(days_begin_at_midnight_of_the_zone)
{
    char utc[64];
    int64_t ms = 0;
    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    assert_int_equal(slurm_parse_moment("-S", "today", SLURM_PAST, NOW_MS, &when_local, &ms, NULL), 0);
    utc_format(ms, utc, sizeof(utc));
    assert_string_equal(utc, "2026-11-20T23:00:00.000Z");
    assert_int_equal(slurm_parse_moment("-S", "07/01", SLURM_PAST, NOW_MS, &when_local, &ms, NULL), 0);
    utc_format(ms, utc, sizeof(utc));
    assert_string_equal(utc, "2026-06-30T22:00:00.000Z");
}
