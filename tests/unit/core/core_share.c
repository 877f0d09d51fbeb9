/* SPDX-License-Identifier: MIT */
/* Jobs that stay above their share of GPU memory, as their agent reports. */
#include "bench.h"

#include <stdlib.h>

#include "base/memory.h"
#include "job/share.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_one, bench_close)

#define SECOND 1000
#define GIB    (UINT64_C(1) << 30)

static int one;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static const struct sent *run_job(struct bench *b)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.gpu_mem = 8 * GIB;
    spec->ask.share = xstrdup("time");
    bench_submit_spec(b, &owner, spec, &one);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_non_null(launch);
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_pass(b, 10);
    return launch;
}

static void report(
    struct bench *b, const struct sent *launch, const char *share, uint64_t over, uint64_t over_ms)
{
    char uuid[] = "GPU-0";
    struct job_usage usage = { .sampled_ms = 100,
        .valid = USAGE_GPU_MEMORY,
        .gpu_memory_peak = over,
        .gpu_memory_size = 24 * GIB,
        .gpu_memory_cap = 8 * GIB,
        .gpu_memory_over = over,
        .over_ms = over_ms,
        .share = xstrdup(share) };
    struct attempt_usage attempt = {
        .id.job = launch->job, .id.attempt = launch->attempt, .token = launch->token, .usage = { &usage, 1 }
    };
    struct gpu_state gpu = { .uuid = uuid, .memory_bytes = 24 * GIB, .numa = -1 };
    struct message_gpus gpus = { .gpus = { &gpu, 1 }, .usages = { &attempt, 1 } };
    struct error err;
    b->now_ms += SECOND;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_GPUS, &gpus, &err), 0);
    bench_settle(b);
    free(usage.share);
}

CASE(a_job_that_stays_above_its_share_is_ended_with_the_numbers, b)
{
    const struct sent *launch = run_job(b);
    report(b, launch, "time", 10 * GIB, 0);
    report(b, launch, "time", 10 * GIB, SHARE_OVER_MS - 1);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    report(b, launch, "time", 10 * GIB, SHARE_OVER_MS);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    report(b, launch, "time", 10 * GIB, 2 * SHARE_OVER_MS);
    assert_int_equal(bench_exited(b, 1, launch, END_CANCELLED, 143), 0);
    bench_settle(b);
    const struct job *job = core_job(b->core, 11);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_GPU_MEM);
    assert_int_equal(job->exit_code, 137);
    assert_string_equal(job->text, "it used up to 10 GiB of GPU memory, and its share is 8 GiB");
    struct error err;
    assert_int_equal(job_invariant(job, &err), 0);
}

CASE(a_short_excess_and_a_share_that_is_not_enforced_end_nothing, b)
{
    const struct sent *launch = run_job(b);
    report(b, launch, NULL, 10 * GIB, 2 * SHARE_OVER_MS);
    report(b, launch, "time", 0, 2 * SHARE_OVER_MS);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    assert_null(bench_sent(b, MESSAGE_STOP, 11));
}
