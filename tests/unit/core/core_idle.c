/* SPDX-License-Identifier: MIT */
/* Jobs that leave their GPUs unused, as their agent tells: 10 s mark them, after 20 s they give way. */
#include "bench.h"

#include <errno.h>

#include "base/memory.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_one, bench_close)

#define SECOND 1000

static int one, two;
static uint64_t gpu_ms; // for how long its GPU is said to be idle
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static void submit(struct bench *b, int64_t idle_timeout_ms, bool is_ok, void *request)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.idle_timeout_ms = idle_timeout_ms;
    spec->ask.idle_ok = is_ok;
    bench_submit_spec(b, &owner, spec, request);
}

/* Job 11 runs on the only GPU. */
static const struct sent *run_first(struct bench *b, int64_t idle_timeout_ms)
{
    submit(b, idle_timeout_ms, false, &one);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_non_null(launch);
    assert_int_equal(bench_started(b, 1, launch), 0);
    b->now_ms += 10; // a start may be committed late
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    b->n_published = 0;
    return launch;
}

/* The agent says, a second later, for how long it has been idle. */
static void say(struct bench *b, const struct sent *launch, int64_t idle_ms)
{
    struct usage_gpu used = { .idle_ms = gpu_ms };
    struct job_usage usage = { .sampled_ms = 100, .idle_ms = (uint64_t)idle_ms, .gpus = { &used, 1 } };
    struct attempt_usage attempt = {
        .id.job = launch->job, .id.attempt = launch->attempt, .token = launch->token, .usage = { &usage, 1 }
    };
    char uuid[] = "GPU-0";
    struct gpu_state gpu = { .uuid = uuid, .memory_bytes = 24ULL << 30, .numa = -1 };
    struct message_gpus gpus = { .gpus = { &gpu, 1 }, .usages = { &attempt, 1 } };
    struct error err;
    b->now_ms += SECOND;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_GPUS, &gpus, &err), 0);
    bench_settle(b);
}

CASE(an_idle_job_is_marked_once_and_until_it_works, b)
{
    const struct sent *launch = run_first(b, 0);
    say(b, launch, 9 * SECOND);
    assert_int_equal(b->n_published, 0);
    assert_int_equal(core_idle_ms(core_find(b->core, 11)), 9 * SECOND);
    say(b, launch, 10 * SECOND);
    say(b, launch, 11 * SECOND);
    assert_int_equal(b->n_published, 1);
    assert_int_equal(b->published[0], EVENT_IDLE);
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_WARNED);
    say(b, launch, 0);
    assert_int_equal(b->n_published, 2);
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_NONE);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

CASE(an_idle_job_gives_way_to_one_that_waits, b)
{
    const struct sent *launch = run_first(b, 0);
    submit(b, 0, false, &two);
    say(b, launch, 15 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    say(b, launch, 20 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
    assert_string_equal(core_job(b->core, 11)->text, "it left its GPUs unused, and another job needs them");
    assert_int_equal(bench_exited(b, 1, launch, END_CANCELLED, 143), 0);
    bench_settle(b);
    /* Its old place would give it back what it did not use. */
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_true(core_job(b->core, 11)->ask->preemptible);
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_NONE);
    assert_int_equal(core_job(b->core, 12)->state, JOB_STARTING);
}

CASE(a_job_that_works_again_gives_way_no_more, b)
{
    const struct sent *launch = run_first(b, 0);
    say(b, launch, 20 * SECOND);
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_YIELDS);
    say(b, launch, 0);
    submit(b, 0, false, &two);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
}

CASE(a_job_is_ended_after_its_own_time, b)
{
    const struct sent *launch = run_first(b, 8 * SECOND);
    say(b, launch, 6 * SECOND);
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_WARNED);
    say(b, launch, 7 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    say(b, launch, 8 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    assert_int_equal(bench_exited(b, 1, launch, END_CANCELLED, 143), 0);
    bench_settle(b);
    const struct job *job = core_job(b->core, 11);
    assert_int_equal(job->end, END_IDLE_TIMEOUT);
    assert_int_equal(job->exit_code, 124);
    assert_string_equal(job->text, "it left all of its GPUs unused for 8s");
    struct error err;
    assert_int_equal(job_invariant(job, &err), 0);
}

static void stand_still(struct bench *b, bool is_still)
{
    static int requests[8];
    static size_t n;
    core_suspend(b->core, b->now_ms, b->now_ms, &owner, 11, !is_still, &requests[n++]);
    bench_settle(b);
}

CASE(a_suspended_job_is_neither_told_nor_ended, b)
{
    const struct sent *launch = run_first(b, 8 * SECOND);
    stand_still(b, true);
    say(b, launch, 3600 * SECOND);
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_NONE);
    stand_still(b, false);
    say(b, launch, 7 * SECOND);
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_WARNED);
    stand_still(b, true);
    for (int i = 0; i < 3; i++)
        say(b, launch, 9 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    stand_still(b, false);
    say(b, launch, 9 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
}

CASE(a_job_is_never_ended_unwarned, b)
{
    const struct sent *launch = run_first(b, 8 * SECOND);
    say(b, launch, 3600 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    say(b, launch, 3601 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    say(b, launch, 3602 * SECOND);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
}

CASE(a_gpu_is_wasted_when_it_alone_is_unused_for_long, b)
{
    const struct sent *launch = run_first(b, 0);
    gpu_ms = 9 * SECOND;
    say(b, launch, 0);
    assert_int_equal(core_gpu_idle_ms(core_find(b->core, 11), "GPU-0"), 9 * SECOND);
    assert_int_equal(core_gpu_idle_ms(core_find(b->core, 11), "GPU-1"), 0);
    assert_false(core_gpu_is_wasted(b->core, core_find(b->core, 11), "GPU-0"));
    gpu_ms = 10 * SECOND;
    say(b, launch, 0);
    gpu_ms = 0;
    assert_true(core_gpu_is_wasted(b->core, core_find(b->core, 11), "GPU-0"));
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_NONE);
}

CASE(what_an_earlier_attempt_did_says_nothing, b)
{
    struct sent late = *run_first(b, 8 * SECOND);
    late.token++;
    say(b, &late, 3600 * SECOND);
    assert_int_equal(core_job(b->core, 11)->idle_level, IDLE_NONE);
    assert_int_equal(core_idle_ms(core_find(b->core, 11)), 0);
}

CASE(only_operators_exempt_their_jobs_where_the_site_says_so, b)
{
    submit(b, 0, true, &one);
    assert_int_equal(bench_answer(b, &one)->code, -EPERM);
}

CASE(a_job_without_gpus_has_no_idle_timeout, b)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.gpus = 0;
    spec->ask.idle_timeout_ms = 60 * SECOND;
    bench_submit_spec(b, &owner, spec, &one);
    assert_int_equal(bench_answer(b, &one)->code, -EINVAL);
}
