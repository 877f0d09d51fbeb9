/* SPDX-License-Identifier: MIT */
/* Requests about a running job: when they reach the agent, and why they are refused. */
#include "bench.h"

#include <errno.h>
#include <signal.h>

#include "base/memory.h"
#include "base/strings.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_one, bench_close)

static int one, two, three;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
static const struct identity other = { .is_known = true, .uid = 1001, .gid = 1001 };
static const struct identity operating = { .is_known = true, .uid = 1002, .role = ROLE_OPERATOR };

static const struct sent *submit(struct bench *b, int64_t limit_ms, void *request)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.time_limit_ms = limit_ms;
    bench_submit_spec(b, &owner, spec, request);
    return bench_sent(b, MESSAGE_LAUNCH, 11);
}

/* Job 11 runs on the only GPU. */
static const struct sent *run_first(struct bench *b)
{
    const struct sent *launch = submit(b, 60000, &one);
    assert_int_equal(bench_started(b, 1, launch), 0);
    b->now_ms += 10; // a start may be committed late
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    return launch;
}

static int code(struct bench *b, const void *request)
{
    bench_settle(b);
    return bench_answer(b, request)->code;
}

CASE(a_signal_is_sent_when_it_is_durable, b)
{
    (void)run_first(b);
    core_signal(b->core, b->now_ms, b->now_ms, &owner, 11, SIGUSR1, 0, &two);
    bench_turn(b);
    assert_null(bench_sent(b, MESSAGE_SIGNAL, 11));
    assert_int_equal(code(b, &two), 0);
    assert_non_null(bench_sent(b, MESSAGE_SIGNAL, 11));
}

CASE(signal_is_not_sent_to_the_next_attempt, b)
{
    struct sent launch = *run_first(b);
    core_signal(b->core, b->now_ms, b->now_ms, &owner, 11, SIGUSR1, 0, &two);
    bench_turn(b); // not durable yet
    core_requeue(b->core, b->now_ms, b->now_ms, &owner, 11, -1, false, &three);
    assert_int_equal(bench_exited(b, 1, &launch, END_CANCELLED, 143), 0);
    bench_turn(b);
    assert_int_equal(code(b, &two), 0);
    assert_int_equal(core_job(b->core, 11)->attempt, 2);
    assert_null(bench_sent(b, MESSAGE_SIGNAL, 11));
}

CASE(a_signal_to_a_node_that_is_away_is_refused, b)
{
    (void)run_first(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    core_signal(b->core, b->now_ms, b->now_ms, &owner, 11, SIGUSR1, 0, &two);
    assert_int_equal(code(b, &two), -EHOSTDOWN);
}

/* Its failure may be due to the cancel, of which the node has not told it yet. */
CASE(a_job_that_fails_when_its_user_has_cancelled_it_is_cancelled, b)
{
    static const struct {
        enum job_end own, expected;
        int exit_code;
    } ends[] = {
        { END_EXIT, END_CANCELLED, 1 },
        { END_SIGNAL, END_CANCELLED, 139 },
        { END_EXIT, END_EXIT, 0 },
        { END_OOM, END_OOM, 137 },
    };
    static int requests[2 * (sizeof(ends) / sizeof(ends[0]))];
    for (uint64_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        bench_submit_spec(b, &owner, bench_spec("sleep"), &requests[2 * i]);
        const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11 + i);
        assert_int_equal(bench_started(b, 1, launch), 0);
        core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11 + i, -1, &requests[2 * i + 1]);
        assert_int_equal(code(b, &requests[2 * i + 1]), 0);
        assert_int_equal(bench_exited(b, 1, launch, ends[i].own, ends[i].exit_code), 0);
        bench_settle(b);
        assert_int_equal(core_job(b->core, 11 + i)->end, ends[i].expected);
    }
}

CASE(a_suspension_is_resent_after_every_hello, b)
{
    const struct sent *launch = run_first(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    core_suspend(b->core, b->now_ms, b->now_ms, &owner, 11, false, &two);
    assert_int_equal(code(b, &two), 0);
    assert_null(bench_sent(b, MESSAGE_UPDATE, 11));
    assert_true(job_run(core_job(b->core, 11))->suspended_ms > 0);
    struct known_attempt known = {
        .id.job = 11, .id.attempt = launch->attempt, .token = launch->token, .phase = PHASE_RUNNING
    };
    assert_int_equal(bench_hello(b, 2, "boot", 1, &known, 1), 0);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_UPDATE, 11));
}

CASE(what_does_not_run_is_refused, b)
{
    (void)submit(b, 0, &one); // it starts
    core_suspend(b->core, b->now_ms, b->now_ms, &owner, 11, false, &two);
    assert_int_equal(code(b, &two), -EALREADY);
    core_signal(b->core, b->now_ms, b->now_ms, &owner, 99, SIGUSR1, 0, &three);
    assert_int_equal(code(b, &three), -ENOENT);
}

CASE(it_is_for_the_owner_and_for_operators, b)
{
    (void)run_first(b);
    core_signal(b->core, b->now_ms, b->now_ms, &other, 11, SIGUSR1, 0, &two);
    assert_int_equal(code(b, &two), -EPERM);
    core_signal(b->core, b->now_ms, b->now_ms, &operating, 11, SIGUSR1, 0, &three);
    assert_int_equal(code(b, &three), 0);
}

CASE(a_requeued_job_waits_behind_those_that_wait, b)
{
    const struct sent *launch = run_first(b);
    (void)submit(b, 60000, &two);
    core_requeue(b->core, b->now_ms, b->now_ms, &owner, 11, -1, false, &three);
    assert_int_equal(code(b, &three), 0);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
    assert_int_equal(bench_exited(b, 1, launch, END_CANCELLED, 143), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_int_equal(core_job(b->core, 12)->state, JOB_STARTING);
    assert_int_equal(core_job(b->core, 11)->restarts, 1);
}

CASE(a_job_that_is_requeued_with_a_hold_waits_until_it_is_released, b)
{
    const struct sent *launch = run_first(b);
    core_requeue(b->core, b->now_ms, b->now_ms, &owner, 11, -1, true, &three);
    assert_int_equal(code(b, &three), 0);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
    assert_int_equal(core_job(b->core, 11)->hold, HOLD_USER);
    assert_int_equal(bench_exited(b, 1, launch, END_CANCELLED, 143), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, 11, true, &two);
    assert_int_equal(code(b, &two), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
}

CASE(a_hold_is_removed_before_its_job_is_back_in_the_queue, b)
{
    const struct sent *launch = run_first(b);
    core_requeue(b->core, b->now_ms, b->now_ms, &owner, 11, -1, true, &three);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, 11, true, &two);
    assert_int_equal(code(b, &two), 0);
    assert_int_equal(bench_exited(b, 1, launch, END_CANCELLED, 143), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
}

CASE(a_running_job_is_edited_to_less_time_by_its_owner_and_to_more_by_operators, b)
{
    (void)run_first(b);
    struct job_ask less, more;
    job_ask_copy(&less, core_job(b->core, 11)->ask);
    job_ask_copy(&more, core_job(b->core, 11)->ask);
    less.time_limit_ms = 30000;
    more.time_limit_ms = 90000;
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 11, &more, NULL, NULL, &two);
    assert_int_equal(code(b, &two), -EPERM);
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 11, &less, NULL, NULL, &three);
    assert_int_equal(code(b, &three), 0);
    assert_non_null(bench_sent(b, MESSAGE_UPDATE, 11));
    assert_int_equal(core_job(b->core, 11)->ask->time_limit_ms, 30000);
    int four;
    core_edit(b->core, b->now_ms, b->now_ms, &operating, 11, &more, NULL, NULL, &four);
    assert_int_equal(code(b, &four), 0);
    assert_int_equal(core_job(b->core, 11)->ask->time_limit_ms, 90000);
    job_ask_clear(&less);
    job_ask_clear(&more);
}

CASE(the_notes_of_a_running_job_can_be_edited_and_what_it_asked_for_cannot, b)
{
    (void)run_first(b);
    struct job_ask noted, larger;
    job_ask_copy(&noted, core_job(b->core, 11)->ask);
    job_ask_copy(&larger, core_job(b->core, 11)->ask);
    strings_set_env(&noted.slurm, "comment", "halfway");
    larger.gpus++;
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 11, &larger, NULL, NULL, &two);
    assert_int_equal(code(b, &two), -EALREADY);
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 11, &noted, NULL, NULL, &three);
    assert_int_equal(code(b, &three), 0);
    assert_true(job_ask_equal(core_job(b->core, 11)->ask, &noted));
    job_ask_clear(&noted);
    job_ask_clear(&larger);
}
