/* SPDX-License-Identifier: MIT */
/* What GET /metrics tells of jobs. */
#include "bench.h"

#include "base/memory.h"
#include "controller/core/counts.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_one, bench_close)

static int one, two;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static void submit_array(struct bench *b, const char *indexes, void *request)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.array = xstrdup(indexes);
    bench_submit_spec(b, &owner, spec, request);
}

static uint64_t count_of(const struct histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
        count += histogram->counts[i];
    return count;
}

static void assert_jobs(const struct bench *b, uint64_t queued, uint64_t starting, uint64_t running)
{
    const struct core_counts *counts = core_counts(b->core);
    assert_int_equal(counts->jobs[JOB_QUEUED], queued);
    assert_int_equal(counts->jobs[JOB_STARTING], starting);
    assert_int_equal(counts->jobs[JOB_RUNNING], running);
    assert_int_equal(counts->jobs[JOB_STOPPING], 0);
}

CASE(a_job_is_counted_in_the_state_that_it_is_in, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_submit(b, 1000, 1, NULL, &two);
    bench_settle(b);
    uint64_t first = bench_answer(b, &one)->job;
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, first);
    assert_jobs(b, 1, 1, 0);
    b->now_ms += 2000;
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    assert_jobs(b, 1, 0, 1);
    assert_int_equal(count_of(&core_counts(b->core)->waits), 1);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 3), 0);
    bench_settle(b);
    assert_jobs(b, 0, 1, 0);
    assert_int_equal(core_counts(b->core)->ended[END_EXIT], 1);
    assert_int_equal(core_counts(b->core)->failed_exits, 1);
    launch = bench_sent(b, MESSAGE_LAUNCH, bench_answer(b, &two)->job);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0); // ended before its start was reported
    bench_settle(b);
    assert_int_equal(count_of(&core_counts(b->core)->waits), 2);
}

CASE(an_array_counts_as_its_elements, b)
{
    submit_array(b, "0-9", &one);
    uint64_t array = bench_answer(b, &one)->job;
    assert_jobs(b, 9, 1, 0);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, array, 0, &two);
    bench_settle(b);
    assert_int_equal(core_counts(b->core)->jobs[JOB_QUEUED], 0);
}

CASE(what_was_loaded_is_counted_and_what_ended_before_is_not, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    uint64_t job = bench_answer(b, &one)->job;
    struct job *stored = bench_stored(b, job);
    bench_restart(b, stored);
    assert_jobs(b, 0, 1, 0);
    assert_int_equal(core_counts(b->core)->ended[END_EXIT], 0);
}
