/* SPDX-License-Identifier: MIT */
/* Nodes that fall silent, on a clock made by hand. */
#include "bench.h"

#include <errno.h>
#include <string.h>

#define TIMEOUT_MS 30000

static int one;

static int open_watching(void **state)
{
    (void)bench_open(state);
    struct bench *b = *state;
    b->options.loss.timeout_ms = TIMEOUT_MS;
    bench_configure(b);
    return bench_hello(b, 1, "boot", 2, NULL, 0);
}

static const struct core_node *box(const struct bench *b)
{
    return core_node(b->core, "box");
}

/* The timer fires on time. */
static void pass(struct bench *b, int64_t ms)
{
    for (int64_t until_ms = b->now_ms + ms; b->now_ms < until_ms;) {
        b->now_ms = b->armed_ms > b->now_ms && b->armed_ms < until_ms ? b->armed_ms : until_ms;
        core_timer(b->core, b->now_ms, b->now_ms);
        bench_settle(b);
    }
}

static int say_heartbeat(struct bench *b, uint32_t link)
{
    struct message_heartbeat heartbeat = { .sent_ms = b->now_ms };
    struct error err;
    return core_link_message(b->core, b->now_ms, b->now_ms, link, MESSAGE_HEARTBEAT, &heartbeat, &err);
}

static struct sent run_one(struct bench *b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    (void)bench_started(b, 1, &launch);
    bench_settle(b);
    return launch;
}

static void a_silent_node_is_unreachable_and_its_jobs_stay(void **state)
{
    struct bench *b = *state;
    (void)run_one(b);
    int64_t heard_ms = b->now_ms;
    pass(b, TIMEOUT_MS - 1000);
    assert_true(box(b)->is_up);
    pass(b, 2000);
    assert_false(box(b)->is_up);
    assert_true(box(b)->is_unreachable);
    assert_in_range(box(b)->heard_wall_ms, heard_ms - 10, heard_ms + 10);
    assert_int_equal(b->closed, 1);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    pass(b, 100 * TIMEOUT_MS);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

static void nothing_starts_on_an_unreachable_node(void **state)
{
    struct bench *b = *state;
    pass(b, TIMEOUT_MS + 1000);
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
}

static void heartbeats_are_answered_and_keep_a_node_up(void **state)
{
    struct bench *b = *state;
    for (int i = 0; i < 20; i++) {
        b->n_sent = 0;
        assert_int_equal(say_heartbeat(b, 1), 0);
        assert_int_equal(b->sent[0].id, MESSAGE_HEARD);
        pass(b, TIMEOUT_MS - 1000);
    }
    assert_true(box(b)->is_up);
}

static void a_node_that_comes_back_is_up_and_its_results_count(void **state)
{
    struct bench *b = *state;
    struct sent launch = run_one(b);
    pass(b, TIMEOUT_MS + 1000);
    struct known_attempt known = {
        .job = 11, .attempt = launch.attempt, .token = launch.token, .phase = PHASE_EXITED
    };
    assert_int_equal(say_heartbeat(b, 1), -EPROTO); // the old link is over
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    bench_settle(b);
    assert_true(box(b)->is_up);
    assert_false(box(b)->is_unreachable);
    assert_int_equal(bench_exited(b, 2, &launch, END_EXIT, 7), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->exit_code, 7);
}

static void a_closed_link_is_down_at_once_and_unreachable_later(void **state)
{
    struct bench *b = *state;
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    bench_settle(b);
    assert_false(box(b)->is_up);
    assert_false(box(b)->is_unreachable);
    pass(b, TIMEOUT_MS + 1000);
    assert_true(box(b)->is_unreachable);
}

static void our_own_absence_is_not_held_against_a_node(void **state)
{
    struct bench *b = *state;
    b->now_ms += 10 * TIMEOUT_MS; // stopped, or the machine slept
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    assert_true(box(b)->is_up);
    pass(b, TIMEOUT_MS + 1000);
    assert_true(box(b)->is_unreachable);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_watching, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_silent_node_is_unreachable_and_its_jobs_stay),
        CASE(nothing_starts_on_an_unreachable_node),
        CASE(heartbeats_are_answered_and_keep_a_node_up),
        CASE(a_node_that_comes_back_is_up_and_its_results_count),
        CASE(a_closed_link_is_down_at_once_and_unreachable_later),
        CASE(our_own_absence_is_not_held_against_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
