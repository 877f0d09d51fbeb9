/* SPDX-License-Identifier: MIT */
/* Nodes that cannot start jobs for reasons of their own are left alone for a while, and no job ends for that.
 */
#include "bench.h"

#include <string.h>

#include "job/start_failure.h"

#define CASE(name) TEST_WITH(name, NULL, bench_close)

#define SECOND    1000
#define ANA       1000
#define BO        1001
#define LONGEST_S 31 // that a node is left alone between two tries

static int requests[8];

static const char *const names[] = { "a", "b", "c" };

static struct bench *open_with_nodes(void **state, uint32_t count, uint32_t gpus)
{
    (void)bench_open(state);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(bench_hello_as(*state, i + 1, names[i], gpus), 0);
    return *state;
}

static void submit(struct bench *b, uint32_t uid)
{
    static int next;
    bench_submit(b, uid, 1, NULL, &requests[next++ % 8]);
    bench_settle(b);
}

static bool is_starting(const struct bench *b, uint64_t job)
{
    return core_job(b->core, job)->state == JOB_STARTING;
}

static uint32_t fail_start(struct bench *b, uint64_t job, uint32_t cause)
{
    assert_true(is_starting(b, job));
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, job);
    assert_int_equal(bench_troubled(b, launch.link, &launch, cause), 0);
    bench_settle(b);
    return launch.link;
}

static void start(struct bench *b, uint64_t job)
{
    assert_true(is_starting(b, job));
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, job);
    assert_int_equal(bench_started(b, launch.link, &launch), 0);
    bench_settle(b);
}

static void set_patience(struct bench *b, int64_t ms)
{
    b->options.start_patience_ms = ms;
    core_configure(b->core, b->now_ms, b->now_ms, &b->options);
    bench_settle(b);
}

CASE(one_users_trouble_keeps_away_only_the_jobs_of_that_user)
{
    struct bench *b = open_with_nodes(state, 1, 1);
    submit(b, ANA);
    submit(b, ANA);
    submit(b, BO);
    fail_start(b, 11, START_USER);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
    start(b, 13);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
}

CASE(the_next_try_comes_later_each_time_and_at_last_every_half_minute)
{
    struct bench *b = open_with_nodes(state, 1, 1);
    submit(b, ANA);
    for (int64_t wait_s = 1; wait_s <= 64; wait_s *= 2) {
        int64_t due_s = wait_s < LONGEST_S ? wait_s : LONGEST_S - 1;
        fail_start(b, 11, START_USER);
        bench_pass(b, due_s * SECOND - 500);
        assert_false(is_starting(b, 11));
        bench_pass(b, 600);
        bench_pass(b, SECOND); // its own delay
        assert_true(is_starting(b, 11));
    }
}

CASE(a_job_that_waits_for_its_node_is_not_given_up_after_some_tries)
{
    struct bench *b = open_with_nodes(state, 1, 1);
    submit(b, ANA);
    for (unsigned i = 0; i < 50; i++) {
        fail_start(b, 11, START_USER);
        bench_pass(b, LONGEST_S * SECOND);
    }
    start(b, 11);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

CASE(the_other_nodes_run_the_jobs_meanwhile)
{
    struct bench *b = open_with_nodes(state, 2, 2);
    submit(b, ANA);
    uint32_t bad = fail_start(b, 11, START_HOME);
    submit(b, ANA);
    assert_int_equal(bench_sent(b, MESSAGE_LAUNCH, 12)->link, 3 - bad);
    bench_pass(b, SECOND + 100);
    assert_true(is_starting(b, 11));
}

/* A user can ask for something that a node cannot make. */
CASE(a_nodes_trouble_keeps_all_away_when_a_second_user_meets_it)
{
    struct bench *b = open_with_nodes(state, 1, 4);
    submit(b, ANA);
    fail_start(b, 11, START_SPOOL);
    submit(b, BO);
    fail_start(b, 12, START_SPOOL); // it was tried all the same
    submit(b, 1002);
    assert_false(is_starting(b, 13));
    bench_pass(b, LONGEST_S * SECOND);
    assert_true(is_starting(b, 13));
}

CASE(a_start_that_succeeds_lets_the_others_in_at_once)
{
    struct bench *b = open_with_nodes(state, 1, 2);
    submit(b, ANA);
    submit(b, ANA); // both are on their way
    fail_start(b, 11, START_USER);
    submit(b, ANA);
    assert_false(is_starting(b, 13));
    start(b, 12);
    assert_true(is_starting(b, 13));
}

CASE(failures_of_attempts_that_were_on_their_way_count_once)
{
    struct bench *b = open_with_nodes(state, 1, 4);
    for (unsigned i = 0; i < 4; i++)
        submit(b, ANA);
    for (uint64_t job = 11; job <= 14; job++)
        fail_start(b, job, START_USER);
    bench_pass(b, 2 * SECOND);
    for (uint64_t job = 11; job <= 14; job++)
        assert_true(is_starting(b, job));
}

CASE(trouble_that_outlasts_the_patience_ends_the_job_with_a_sentence)
{
    struct bench *b = open_with_nodes(state, 1, 1);
    set_patience(b, 60 * SECOND);
    submit(b, ANA);
    unsigned tries = 0;
    while (core_job(b->core, 11)->state != JOB_DONE && tries++ < 20) {
        fail_start(b, 11, START_USER);
        if (core_job(b->core, 11)->state != JOB_DONE)
            bench_pass(b, LONGEST_S * SECOND);
    }
    assert_int_equal(core_job(b->core, 11)->end, END_START_FAILED);
    assert_int_equal(tries, 3);
    assert_string_equal(core_job(b->core, 11)->text,
        "given up after its starts have failed for 1m00s: unknown user id on this node: 1000");
}

/* Only the trouble is old. */
CASE(a_job_that_has_just_been_submitted_is_not_given_up)
{
    struct bench *b = open_with_nodes(state, 1, 1);
    set_patience(b, 60 * SECOND);
    submit(b, ANA);
    for (unsigned i = 0; i < 3; i++) {
        fail_start(b, 11, START_USER);
        if (i < 2)
            bench_pass(b, LONGEST_S * SECOND);
    }
    submit(b, ANA);
    bench_pass(b, LONGEST_S * SECOND);
    fail_start(b, 12, START_USER);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
}

CASE(after_the_patience_a_job_waits_for_the_other_nodes_alone)
{
    struct bench *b = open_with_nodes(state, 2, 1);
    set_patience(b, 60 * SECOND);
    submit(b, BO);
    start(b, 11);
    uint32_t busy = bench_sent(b, MESSAGE_LAUNCH, 11)->link;
    submit(b, ANA);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fail_start(b, 12, START_USER), 3 - busy);
        bench_pass(b, LONGEST_S * SECOND);
    }
    bench_pass(b, 10 * LONGEST_S * SECOND);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_int_equal(bench_exited(b, busy, &launch, END_EXIT, 0), 0);
    bench_settle(b);
    assert_true(is_starting(b, 12));
    assert_int_equal(bench_sent(b, MESSAGE_LAUNCH, 12)->link, busy);
}

CASE(the_reason_is_reported)
{
    struct bench *b = open_with_nodes(state, 1, 1);
    char text[256];
    submit(b, ANA);
    fail_start(b, 11, START_USER);
    assert_string_equal(
        core_wait_reason(b->core, b->now_ms, core_find(b->core, 11), text, sizeof(text)), "backoff");
    assert_string_equal(text, "its last attempt failed: unknown user id on this node: 1000");
    submit(b, ANA);
    assert_string_equal(
        core_wait_reason(b->core, b->now_ms, core_find(b->core, 12), text, sizeof(text)), "backoff");
    assert_string_equal(text, "starts fail on a: unknown user id on this node: 1000");
}

CASE(a_job_that_is_cancelled_meanwhile_ends)
{
    struct bench *b = open_with_nodes(state, 1, 1);
    static const struct identity ana = { .is_known = true, .uid = ANA };
    submit(b, ANA);
    core_cancel(b->core, b->now_ms, b->now_ms, &ana, 11, -1, &requests[7]);
    bench_settle(b);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_int_equal(bench_troubled(b, 1, &launch, START_USER), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_CANCELLED);
}
