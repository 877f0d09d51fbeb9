/* SPDX-License-Identifier: MIT */
/* Failing GPUs: who is notified, what is stored, and when they are allocated again. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_two, bench_close)

static int one, two;
static const struct identity admin = { .is_known = true, .uid = 77, .role = ROLE_ADMIN };
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

/* What the node says of its first GPU; the second is well. */
struct sample {
    uint32_t xid; // that has just come; 0: none
    uint32_t is_lost, is_unclean, is_released;
    const char *trouble;
};

static void see(struct bench *b, struct sample sample)
{
    struct gpu_xid xid = { sample.xid, b->now_ms };
    struct gpu_state gpus[] = {
        { .uuid = (char[]){ "GPU-0" },
            .numa = -1,
            .is_lost = sample.is_lost,
            .is_unclean = sample.is_unclean,
            .is_released = sample.is_released },
        { .index = 1, .uuid = (char[]){ "GPU-1" }, .numa = -1 },
    };
    gpus[0].trouble = xstrdup(sample.trouble);
    gpus[0].xids = (struct record_list){ &xid, sample.xid != 0 };
    struct message_gpus message = { .gpus = { .items = gpus, .count = 2 } };
    struct error err;
    b->now_ms += 1000;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_GPUS, &message, &err), 0);
    bench_settle(b);
    free(gpus[0].trouble);
}

static const struct cluster_gpu *books(const struct bench *b)
{
    return &sched_cluster(core_sched(b->core))->nodes[0].gpus[0];
}

static const char *fault_text(const struct bench *b)
{
    const struct cluster_change *fault = core_find_gpu(core_node_named(b->core, "box"), "GPU-0")->fault;
    return fault != NULL ? fault->text : NULL;
}

static void request_action(struct bench *b, const struct identity *who, enum gpu_action action, void *request)
{
    struct strings gpus = { 0 };
    strings_add(&gpus, "box:0");
    core_pause(b->core, b->now_ms, b->now_ms, who, &gpus, "fan", 0, action, request);
    strings_clear(&gpus);
    bench_settle(b);
}

static void pause_or_resume(struct bench *b, const struct identity *who, bool is_resume, void *request)
{
    request_action(b, who, is_resume ? GPU_ACTION_RESUME : GPU_ACTION_PAUSE, request);
}

CASE(a_gpu_that_fails_gets_no_new_jobs_and_the_other_does, b)
{
    see(b, (struct sample){ .xid = 79 });
    assert_int_equal(books(b)->closed, DEVICE_UNHEALTHY);
    assert_string_equal(fault_text(b), "Xid 79: GPU has fallen off the bus");
    bench_submit(b, 1000, 1, NULL, &one);
    bench_submit(b, 1000, 1, NULL, &two);
    bench_settle(b);
    struct why why;
    bool is_told = false;
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
    struct why_run *run = core_why_begin(b->core, b->now_ms, 12);
    assert_non_null(run);
    while (!core_why_advance(run, 1))
        continue;
    core_why_end(run, &why);
    for (size_t i = 0; i < why.n_reasons; i++)
        is_told = is_told || why.reasons[i].code == WHY_GPU_PAUSED;
    why_clear(&why);
    assert_true(is_told);
}

CASE(an_error_of_the_application_closes_nothing, b)
{
    see(b, (struct sample){ .xid = 31 });
    assert_int_equal(books(b)->closed, 0);
    assert_null(fault_text(b));
}

CASE(what_runs_there_goes_on, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    assert_int_equal(bench_started(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
    see(b, (struct sample){ .xid = 95 });
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    assert_int_equal(books(b)->closed, DEVICE_UNHEALTHY);
}

CASE(somebody_resumes_it, b)
{
    see(b, (struct sample){ .xid = 79 });
    pause_or_resume(b, &owner, true, &one);
    assert_int_equal(bench_answer(b, &one)->code, -EPERM);
    assert_int_equal(books(b)->closed, DEVICE_UNHEALTHY);
    pause_or_resume(b, &admin, true, &two);
    assert_int_equal(bench_answer(b, &two)->code, 0);
    assert_int_equal(books(b)->closed, 0);
    assert_null(fault_text(b));
}

CASE(a_resume_ends_pause_and_fault_alike, b)
{
    see(b, (struct sample){ .xid = 79 });
    pause_or_resume(b, &admin, false, &one);
    assert_true(books(b)->is_paused);
    pause_or_resume(b, &admin, true, &two);
    assert_false(books(b)->is_paused);
    assert_int_equal(books(b)->closed, 0);
}

CASE(a_fault_outlives_a_restart, b)
{
    struct gpu_xid xid = { 48, 5 };
    struct gpu_state gpu = { .uuid = (char[]){ "GPU-0" }, .numa = -1, .xids = { &xid, 1 } };
    struct message_gpus message = { .gpus = { .items = &gpu, .count = 1 } };
    struct error err;
    bench_settle(b);
    b->now_ms += 1000;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_GPUS, &message, &err), 0);
    b->now_ms += 10;
    bench_turn(b);
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_turn(b);
    assert_non_null(b->flying);
    const struct state_change *row = &b->flying->states[0];
    assert_string_equal(row->kind, "gpu-fault");
    assert_string_equal(row->key, "box/GPU-0");
    struct bench *later = NULL;
    (void)bench_open((void **)&later);
    assert_int_equal(
        core_load_state(later->core, row->kind, row->key, row->value.bytes, row->value.length, &err), 0);
    (void)bench_hello(later, 1, "boot", 1, NULL, 0);
    assert_int_equal(books(later)->closed, DEVICE_UNHEALTHY);
    assert_int_equal(core_find_gpu(core_node_named(later->core, "box"), "GPU-0")->fault->xid, 48);
    pause_or_resume(later, &admin, true, &one);
    assert_int_equal(books(later)->closed, 0);
    (void)bench_close((void **)&later);
}

/* The node sends nothing meanwhile, so the core's own timer must do it. */
CASE(a_contained_error_is_over_by_itself, b)
{
    see(b, (struct sample){ .xid = 94 });
    see(b, (struct sample){ 0 });
    bench_pass(b, 597000);
    assert_int_equal(books(b)->closed, DEVICE_UNHEALTHY);
    assert_in_range(b->armed_ms, 1, b->now_ms + 2000);
    bench_pass(b, 2000);
    assert_int_equal(books(b)->closed, 0);
}

CASE(a_vanished_gpu_returns_when_it_is_seen_again, b)
{
    see(b, (struct sample){ .is_lost = 1, .trouble = "the driver does not answer" });
    assert_string_equal(fault_text(b), "vanished: the driver does not answer");
    assert_false(books(b)->is_present);
    see(b, (struct sample){ 0 });
    assert_int_equal(books(b)->closed, DEVICE_UNHEALTHY);
    for (int i = 0; i < 3; i++)
        see(b, (struct sample){ 0 });
    assert_int_equal(books(b)->closed, 0);
    assert_true(books(b)->is_present);
}

CASE(what_stays_unclean_for_long_is_a_fault, b)
{
    struct sample unclean = { .is_unclean = 1, .trouble = "2G still used by no process" };
    see(b, unclean);
    assert_int_equal(books(b)->closed, DEVICE_UNCLEAN);
    b->now_ms += 600000;
    see(b, unclean);
    assert_int_equal(books(b)->closed, DEVICE_UNCLEAN | DEVICE_UNHEALTHY);
    assert_string_equal(fault_text(b), "not clean for 10m00s: 2G still used by no process");
}

/* The end of job 11 with what its black box says. */
static void end_job(struct bench *b, enum job_end end, int exit_code, uint32_t xid)
{
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11);
    struct job_usage usage = { .xid = xid, .fault = (char[]){ "GPU 0: Xid" } };
    struct launch_exit record = { .id.job = launch->job,
        .id.attempt = launch->attempt,
        .token = launch->token,
        .end = end,
        .exit_code = exit_code,
        .signal = end == END_SIGNAL ? 9 : 0,
        .is_executed = 1,
        .started_wall_ms = 5,
        .usage = { &usage, 1 } };
    struct error err;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_EXITED, &record, &err), 0);
    bench_settle(b);
}

TEST(a_job_that_failed_after_an_error_of_its_gpu_ended_by_it)
{
    const struct {
        enum job_end end;
        int exit_code;
        uint32_t xid;
        enum job_end want;
    } cases[] = {
        { END_EXIT, 1, 31, END_GPU_FAULT },
        { END_SIGNAL, 137, 79, END_GPU_FAULT },
        { END_EXIT, 0, 31, END_EXIT },
        { END_EXIT, 1, 63, END_EXIT },
        { END_EXIT, 1, 0, END_EXIT },
        { END_OOM, 137, 31, END_OOM },
        { END_CANCELLED, 143, 31, END_CANCELLED },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bench *b = NULL;
        (void)bench_open_with_two((void **)&b);
        bench_submit(b, 1000, 1, NULL, &one);
        bench_settle(b);
        assert_int_equal(bench_started(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
        end_job(b, cases[i].end, cases[i].exit_code, cases[i].xid);
        const struct job *job = core_job(b->core, 11);
        assert_int_equal(job->end, cases[i].want);
        assert_int_equal(job->exit_code, cases[i].exit_code);
        if (cases[i].want == END_GPU_FAULT)
            assert_string_equal(job->text, "GPU 0: Xid");
        (void)bench_close((void **)&b);
    }
}

/* --- release --- */

static unsigned count_releases(const struct bench *b)
{
    unsigned count = 0;
    for (size_t i = 0; i < b->n_sent; i++)
        count += b->sent[i].id == MESSAGE_RELEASE_GPUS;
    return count;
}

CASE(a_release_is_resent_until_the_node_shows_it_and_so_is_its_end, b)
{
    const struct sample released = { .is_lost = 1, .is_released = 1, .trouble = "released" };
    request_action(b, &admin, GPU_ACTION_RELEASE, &one);
    assert_int_equal(bench_answer(b, &one)->code, 0);
    assert_int_equal(count_releases(b), 1);
    assert_int_equal(bench_sent(b, MESSAGE_RELEASE_GPUS, 0)->n_gpus, 1);
    see(b, (struct sample){ .is_lost = 1, .trouble = "released" }); // a process still has it open
    assert_int_equal(count_releases(b), 2);
    see(b, released);
    see(b, released);
    assert_int_equal(count_releases(b), 2);
    assert_null(fault_text(b));
    bench_hello(b, 1, "boot", 2, NULL, 0); // an agent that knows nothing of it
    assert_int_equal(count_releases(b), 3);
    see(b, released);
    pause_or_resume(b, &admin, true, &two);
    assert_int_equal(count_releases(b), 4);
    assert_int_equal(bench_sent(b, MESSAGE_RELEASE_GPUS, 0)->n_gpus, 0);
    see(b, released);
    assert_int_equal(count_releases(b), 5);
    assert_null(fault_text(b));
    see(b, (struct sample){ 0 });
    assert_int_equal(count_releases(b), 5);
    assert_null(fault_text(b));
    assert_int_equal(books(b)->closed, 0);
}

CASE(a_gpu_with_a_job_is_not_released, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    request_action(b, &admin, GPU_ACTION_RELEASE, &two);
    assert_int_equal(bench_answer(b, &two)->code, -EBUSY);
    assert_int_equal(count_releases(b), 0);
    assert_null(core_find_gpu(core_node_named(b->core, "box"), "GPU-0")->mark);
}
