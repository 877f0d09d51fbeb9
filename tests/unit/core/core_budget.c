/* SPDX-License-Identifier: MIT */
/* The GPU time of tokens: what is counted, when it is used up, and the consequences. */
#include "bench.h"

#include <errno.h>

#include "base/memory.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_four, bench_close)

#define SECOND 1000

static int one, two, three;

/* Token 7 of user 1000, with ten seconds of a GPU. */
static const struct identity holder = { .is_known = true,
    .uid = 1000,
    .gid = 1000,
    .token = { .id = 7, .scopes = SCOPE_SUBMIT, .max_gpu_ms = 10 * SECOND, .expires_ms = INT64_MAX / 2 } };

static void submit(struct bench *b, uint32_t gpus, uint32_t share, int64_t limit_ms, void *request)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.gpus = gpus;
    spec->ask.gpu_share = share;
    spec->ask.time_limit_ms = limit_ms;
    bench_submit_spec(b, &holder, spec, request);
}

static const struct sent *run(struct bench *b, uint64_t job, uint32_t gpus, uint32_t share, void *request)
{
    submit(b, gpus, share, 0, request);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, job);
    assert_non_null(launch);
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    return launch;
}

static void assert_used(struct bench *b, int64_t ms)
{
    int64_t used_ms = (int64_t)core_token_used_ms(b->core, b->now_ms, 7);
    assert_in_range(used_ms, ms - 100, ms + 100);
}

CASE(jobs_are_ended_when_it_is_used_up_together, b)
{
    (void)run(b, 11, 2, 0, &one);
    (void)run(b, 12, 1, 500, &two);
    bench_pass(b, 2 * SECOND);
    assert_used(b, 5 * SECOND);
    bench_pass(b, 2 * SECOND - 100);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    bench_pass(b, 200);
    for (uint64_t id = 11; id <= 12; id++) {
        assert_int_equal(core_job(b->core, id)->state, JOB_STOPPING);
        assert_int_equal(core_job(b->core, id)->stop_reason, END_BUDGET);
    }
    submit(b, 1, 0, 0, &three);
    assert_int_equal(bench_answer(b, &three)->code, -EPERM);
}

CASE(an_ended_attempt_counts_for_what_it_held, b)
{
    const struct sent *launch = run(b, 11, 2, 0, &one);
    bench_pass(b, 3 * SECOND);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_settle(b);
    bench_pass(b, 60 * SECOND);
    assert_used(b, 6 * SECOND);
}

CASE(a_limit_that_could_exceed_the_rest_is_refused, b)
{
    submit(b, 4, 0, 3 * SECOND, &one);
    assert_int_equal(bench_answer(b, &one)->code, -EPERM);
    submit(b, 4, 0, 2 * SECOND, &two);
    assert_int_equal(bench_answer(b, &two)->code, 0);
}

CASE(a_job_without_gpus_needs_none_of_it, b)
{
    (void)run(b, 11, 4, 0, &one);
    (void)run(b, 12, 0, 0, &two);
    bench_pass(b, 3 * SECOND);
    assert_int_equal(core_job(b->core, 11)->stop_reason, END_BUDGET);
    assert_int_equal(core_job(b->core, 12)->state, JOB_RUNNING);
    submit(b, 0, 0, 0, &three);
    assert_int_equal(bench_answer(b, &three)->code, 0);
}
