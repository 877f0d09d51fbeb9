/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/api/timeouts.h"
#include "unit_test.h"

/* A session that began, and last received something, this long ago. */
static struct timeouts since(int64_t begun_ms, int64_t received_ms, struct timeouts limits)
{
    limits.begun_ms = clock_boot_ms() - begun_ms;
    limits.received_ms = clock_boot_ms() - received_ms;
    return limits;
}

static void assert_exhausted(struct timeouts timeouts, const char *words)
{
    struct error err = { 0 };
    assert_int_equal(timeouts_left_ms(&timeouts), 0);
    assert_int_equal(timeouts_check(&timeouts, &err), -ETIME);
    assert_string_equal(err.message, words);
}

TEST(without_timeouts_it_waits_for_ever)
{
    struct timeouts none = since(INT32_MAX, INT32_MAX, (struct timeouts){ 0 });
    assert_int_equal(timeouts_left_ms(NULL), -1);
    assert_int_equal(timeouts_check(NULL, NULL), 0);
    timeouts_note_received(NULL);
    timeouts_begin(NULL);
    assert_int_equal(timeouts_left_ms(&none), -1);
    assert_int_equal(timeouts_check(&none, NULL), 0);
}

TEST(each_limit_ends_it_and_is_named)
{
    assert_exhausted(since(5000, 0, (struct timeouts){ .session_ms = 5000 }), "session timeout after 5 s");
    assert_exhausted(since(9000, 3000, (struct timeouts){ .silence_ms = 3000 }), "no output for 3 s");
    assert_exhausted(since(30000, 20000, (struct timeouts){ .silent_turns = 2 }),
        "no output in 2 consecutive waits of 10 s");
}

TEST(what_is_heard_counts_against_silence_alone)
{
    struct timeouts timeouts =
        since(5000, 5000, (struct timeouts){ .session_ms = 60000, .silence_ms = 4000, .silent_turns = 1 });
    assert_int_equal(timeouts_check(&timeouts, NULL), -ETIME);
    timeouts_note_received(&timeouts);
    assert_int_equal(timeouts_check(&timeouts, NULL), 0);
    assert_true(timeouts_left_ms(&timeouts) > 3000 && timeouts_left_ms(&timeouts) <= 4000);
    timeouts.session_ms = 5000;
    assert_int_equal(timeouts_check(&timeouts, NULL), -ETIME);
    timeouts_begin(&timeouts);
    assert_int_equal(timeouts_check(&timeouts, NULL), 0);
}

TEST(a_very_long_limit_is_waited_for_in_pieces)
{
    struct timeouts timeouts =
        since(0, 0, (struct timeouts){ .session_ms = INT64_C(366) * 24 * 3600 * 1000 });
    assert_int_equal(timeouts_left_ms(&timeouts), INT32_MAX);
}
