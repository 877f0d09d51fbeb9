/* SPDX-License-Identifier: MIT */

#include "agent/core/attempt.h"
#include "unit_test.h"

struct expectation {
    struct attempt_observation observed;
    enum attempt_want want;
    enum attempt_action action;
};

static void check(const struct expectation *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum attempt_action action = attempt_decide(&rows[i].observed, rows[i].want);
        if (action != rows[i].action)
            fail_msg("row %zu: %s instead of %s", i, attempt_action_name(action),
                attempt_action_name(rows[i].action));
    }
}
#define CHECK(rows) check(rows, sizeof(rows) / sizeof((rows)[0]))

#define GO   .verdict = VERDICT_GO
#define NOGO .verdict = VERDICT_NOGO

TEST(a_launch_is_staged_started_and_waited_for)
{
    const struct expectation rows[] = {
        { { 0 }, WANT_RUN, ATTEMPT_STAGE },
        { { .has_spec = true }, WANT_RUN, ATTEMPT_START },
        { { .has_spec = true, .is_alive = true }, WANT_RUN, ATTEMPT_WAIT },
        { { .has_spec = true, .is_alive = true, GO }, WANT_RUN, ATTEMPT_REPORT_STARTED },
        { { .has_spec = true, .is_alive = true, GO, .has_exit = true }, WANT_RUN, ATTEMPT_REPORT_EXITED },
        { { .has_spec = true, GO, .has_exit = true }, WANT_RUN, ATTEMPT_REPORT_EXITED },
        { { .has_spec = true, GO, .has_exit = true, .is_checking = true }, WANT_RUN, ATTEMPT_WAIT },
        { { .has_spec = true, GO, .has_exit = true, .is_checking = true }, WANT_RELEASED, ATTEMPT_REMOVE },
        { { .has_spec = true, GO, .has_exit = true }, WANT_RELEASED, ATTEMPT_REMOVE },
    };
    CHECK(rows);
}

TEST(rank_is_released_when_all_are_ready)
{
    const struct expectation rows[] = {
        { { .has_spec = true, .is_alive = true }, WANT_GO, ATTEMPT_WAIT },
        { { .has_spec = true, .is_alive = true, .is_ready = true }, WANT_NOTHING, ATTEMPT_REPORT_READY },
        { { .has_spec = true, .is_alive = true, .is_ready = true }, WANT_RUN, ATTEMPT_REPORT_READY },
        { { .has_spec = true, .is_alive = true, .is_ready = true }, WANT_GO, ATTEMPT_RELEASE },
        { { .has_spec = true, .is_alive = true, .is_ready = true }, WANT_STOP, ATTEMPT_SETTLE },
        { { .has_spec = true, .is_alive = true, .is_ready = true }, WANT_RELEASED, ATTEMPT_SETTLE },
        { { .has_spec = true }, WANT_GO, ATTEMPT_START },
        { { .has_spec = true, .is_alive = true, GO }, WANT_GO, ATTEMPT_REPORT_STARTED },
        { { .has_spec = true, .is_alive = true, NOGO }, WANT_RELEASED, ATTEMPT_RELEASE },
    };
    CHECK(rows);
}

TEST(a_guess_is_prepared_once_and_dropped_by_its_verdict)
{
    const struct expectation rows[] = {
        { { 0 }, WANT_PREPARED, ATTEMPT_STAGE },
        { { .has_spec = true }, WANT_PREPARED, ATTEMPT_START },
        { { .has_spec = true, .is_alive = true, .is_ready = true }, WANT_PREPARED, ATTEMPT_WAIT },
        { { .has_spec = true, .is_alive = true, NOGO }, WANT_PREPARED, ATTEMPT_RELEASE },
        { { .has_spec = true, NOGO }, WANT_PREPARED, ATTEMPT_REMOVE },
        { { 0 }, WANT_DROPPED, ATTEMPT_REMOVE },
        { { .has_spec = true }, WANT_DROPPED, ATTEMPT_SETTLE },
        { { .has_spec = true, .is_alive = true, .is_ready = true }, WANT_DROPPED, ATTEMPT_SETTLE },
        { { .has_spec = true, .is_alive = true, NOGO }, WANT_DROPPED, ATTEMPT_RELEASE },
        { { .has_spec = true, NOGO }, WANT_DROPPED, ATTEMPT_REMOVE },
    };
    CHECK(rows);
}

TEST(what_nobody_asked_for_yet_is_left_alone)
{
    const struct expectation rows[] = {
        { { 0 }, WANT_NOTHING, ATTEMPT_WAIT },
        { { .has_spec = true }, WANT_NOTHING, ATTEMPT_WAIT },
        { { .has_spec = true, .is_alive = true }, WANT_NOTHING, ATTEMPT_WAIT },
        { { .has_spec = true, .is_alive = true, GO }, WANT_NOTHING, ATTEMPT_REPORT_STARTED },
        { { .has_spec = true, NOGO }, WANT_NOTHING, ATTEMPT_REPORT_RETURNED },
        { { .has_spec = true, GO, .has_exit = true }, WANT_NOTHING, ATTEMPT_REPORT_EXITED },
    };
    CHECK(rows);
}

TEST(a_dead_shepherd_is_finished_for_whatever_is_wanted)
{
    for (enum attempt_want want = WANT_NOTHING; want < ATTEMPT_WANTS; want++) {
        const struct expectation rows[] = { { { .has_spec = true, GO }, want, ATTEMPT_ADOPT } };
        CHECK(rows);
    }
}

TEST(a_stop_settles_what_has_no_verdict_and_tells_what_runs)
{
    const struct expectation rows[] = {
        { { 0 }, WANT_STOP, ATTEMPT_SETTLE },
        { { .has_spec = true }, WANT_STOP, ATTEMPT_SETTLE },
        { { .has_spec = true, .is_alive = true }, WANT_STOP, ATTEMPT_SETTLE },
        { { .has_spec = true, .is_alive = true, NOGO }, WANT_STOP, ATTEMPT_REPORT_RETURNED },
        { { .has_spec = true, .is_alive = true, GO }, WANT_STOP, ATTEMPT_COMMAND },
        { { .has_spec = true, .is_alive = true, GO }, WANT_STOPPED, ATTEMPT_REPORT_STARTED },
        { { .has_spec = true, GO, .has_exit = true }, WANT_STOP, ATTEMPT_REPORT_EXITED },
    };
    CHECK(rows);
}

TEST(a_forgotten_attempt_goes_when_nothing_of_it_is_left)
{
    const struct expectation rows[] = {
        { { 0 }, WANT_RELEASED, ATTEMPT_REMOVE },
        { { .has_spec = true }, WANT_RELEASED, ATTEMPT_SETTLE },
        { { .has_spec = true, .is_alive = true }, WANT_RELEASED, ATTEMPT_SETTLE },
        { { .has_spec = true, NOGO }, WANT_RELEASED, ATTEMPT_REMOVE },
        { { .has_spec = true, NOGO, .is_alive = true }, WANT_RELEASED, ATTEMPT_RELEASE },
        { { .has_spec = true, GO, .is_alive = true }, WANT_RELEASED, ATTEMPT_WAIT },
        { { .has_spec = true, GO, .is_alive = true, .has_exit = true }, WANT_RELEASED, ATTEMPT_REMOVE },
    };
    CHECK(rows);
}

TEST(what_outlived_the_exit_record_is_killed_first)
{
    for (enum attempt_want want = WANT_NOTHING; want < ATTEMPT_WANTS; want++) {
        const struct expectation rows[] = {
            { { .has_spec = true, GO, .has_exit = true, .is_populated = true }, want, ATTEMPT_KILL },
        };
        CHECK(rows);
    }
}

static void check_safety(const struct attempt_observation *observed, enum attempt_want want)
{
    enum attempt_action action = attempt_decide(observed, want);
    bool is_start = action == ATTEMPT_STAGE || action == ATTEMPT_START;
    if (is_start) {
        assert_int_equal(observed->verdict, VERDICT_NONE);
        assert_false(observed->is_alive);
        assert_false(observed->has_exit);
        assert_true(want == WANT_RUN || want == WANT_GO || want == WANT_PREPARED);
    }
    if (action == ATTEMPT_REPORT_RETURNED)
        assert_int_equal(observed->verdict, VERDICT_NOGO);
    if (action == ATTEMPT_REPORT_EXITED)
        assert_true(observed->has_exit && !observed->is_populated);
    if (action == ATTEMPT_REMOVE)
        assert_true(
            want == WANT_RELEASED || (attempt_is_speculative(want) && observed->verdict != VERDICT_GO));
    if (action == ATTEMPT_REMOVE)
        assert_false(observed->has_exit && observed->is_populated);
    if (action == ATTEMPT_SETTLE)
        assert_int_equal(observed->verdict, VERDICT_NONE);
    if (action == ATTEMPT_COMMAND)
        assert_true(observed->is_alive && want == WANT_STOP && observed->verdict == VERDICT_GO);
    if (want != WANT_RELEASED && observed->has_exit && !observed->is_populated)
        assert_int_equal(action, ATTEMPT_REPORT_EXITED);
}

TEST(no_look_leads_to_a_second_start_or_a_lost_end)
{
    for (unsigned int bits = 0; bits < 16; bits++) {
        for (enum spool_verdict verdict = VERDICT_NONE; verdict <= VERDICT_NOGO; verdict++) {
            for (enum attempt_want want = WANT_NOTHING; want < ATTEMPT_WANTS; want++) {
                struct attempt_observation observed = {
                    .has_spec = bits & 1,
                    .is_alive = bits & 2,
                    .has_exit = bits & 4,
                    .is_populated = bits & 8,
                    .verdict = verdict,
                };
                check_safety(&observed, want);
            }
        }
    }
}
