/* SPDX-License-Identifier: MIT */
/* Jobs that start early without having asked, because jobs with their command used their GPU late. */
#include <string.h>

#include "base/memory.h"
#include "early_scene.h"

#define FIRST 11U // number of the first job

static int asked;

static int open_auto(void **state)
{
    (void)scene_open(state);
    struct bench *b = *state;
    b->options.early.mode = EARLY_AUTO;
    bench_configure(b);
    return 0;
}

#define CASE(name, open, b) TEST_ON(name, struct bench *b, open, scene_close)

/* It runs on the GPU from its start, which its node sees it use after this time; 0: never. */
static void end_seen(struct bench *b, uint64_t id, uint64_t first_use_ms)
{
    struct job_usage usage = { .first_use_ms = first_use_ms };
    struct launch_exit record = { .id.job = id,
        .id.attempt = scene_job(b, id)->attempt,
        .token = scene_job(b, id)->token,
        .end = END_EXIT,
        .is_executed = 1,
        .started_wall_ms = 5,
        .usage = { .items = &usage, .count = 1 } };
    scene_say(b, MESSAGE_EXITED, &record);
    assert_int_equal(scene_job(b, id)->state, JOB_DONE);
}

static void assert_described(struct bench *b, uint64_t id, const char *wanted)
{
    _cleanup_free_ char *text = core_describe_early(b->core, core_find(b->core, id));
    if (wanted == NULL)
        assert_null(text);
    else
        assert_string_equal(text, wanted);
}

/* Runs `train` until its node has seen its first use of the GPU. Its id is `id`. */
static void learn(struct bench *b, uint64_t id, uint64_t first_use_ms, int *request)
{
    scene_submit(b, (struct scene_job){ .limit_s = 60 }, request);
    scene_run(b, id);
    end_seen(b, id, first_use_ms);
}

/* Another program has the GPU. */
static void occupy(struct bench *b, uint64_t id, int *request)
{
    scene_submit(b, (struct scene_job){ .command = "other", .limit_s = 60 }, request);
    scene_run(b, id);
}

CASE(a_command_starts_early_when_its_latest_run_used_the_gpu_late, open_auto, b)
{
    static int requests[8];
    learn(b, FIRST, 2001, &requests[0]);
    occupy(b, FIRST + 1, &requests[1]);
    scene_submit(b, (struct scene_job){ .is_unwilling = true }, &requests[2]);
    scene_submit(b, (struct scene_job){ .command = "unknown" }, &requests[3]);
    assert_int_equal(scene_job(b, FIRST + 2)->state, JOB_QUEUED);
    assert_int_equal(scene_job(b, FIRST + 3)->state, JOB_QUEUED);
    assert_described(b, FIRST + 2, NULL);
    assert_described(b, FIRST + 3, NULL);
    scene_submit(b, (struct scene_job){ .priority = 0 }, &requests[4]);
    assert_int_equal(scene_job(b, FIRST + 4)->state, JOB_QUEUED); // behind those two
    assert_described(b, FIRST + 4, "yes, the latest run of this command took 2s to its first use of a GPU");
    for (uint64_t id = FIRST + 2; id < FIRST + 4; id++)
        core_cancel(b->core, b->now_ms, b->now_ms, &scene_owner, id, -1, &requests[id - FIRST + 3]);
    scene_settle(b);
    scene_run(b, FIRST + 4);
    scene_expect_early(b, FIRST + 4);
    scene_end(b, FIRST + 1, END_EXIT, 0);
    scene_expect_granted(b, FIRST + 4);
}

/* One within 2 s among the latest three is enough, and a run that nobody measured is none. */
CASE(one_early_use_among_the_latest_three_ends_that, open_auto, b)
{
    static int requests[8];
    learn(b, FIRST, 2000, &requests[0]);
    for (uint64_t id = FIRST + 1; id < FIRST + 3; id++)
        learn(b, id, 60000, &requests[id - FIRST]);
    learn(b, FIRST + 3, 0, &requests[3]);
    occupy(b, FIRST + 4, &requests[4]);
    scene_submit(b, (struct scene_job){ 0 }, &requests[5]);
    assert_int_equal(scene_job(b, FIRST + 5)->state, JOB_QUEUED);
    assert_described(b, FIRST + 5, "no, this command has used a GPU within 2s of its start");
    scene_end(b, FIRST + 4, END_EXIT, 0);
    scene_run(b, FIRST + 5);
    end_seen(b, FIRST + 5, 3000); // the third since then
    occupy(b, FIRST + 6, &requests[6]);
    scene_submit(b, (struct scene_job){ .is_held = true }, &requests[7]);
    assert_described(
        b, FIRST + 7, "yes, the latest runs of this command took 3s or more to their first use of a GPU");
    core_hold(b->core, b->now_ms, b->now_ms, &scene_owner, FIRST + 7, true, &asked);
    scene_settle(b);
    scene_run(b, FIRST + 7);
    scene_expect_early(b, FIRST + 7);
}

CASE(one_that_fails_before_it_has_its_gpu_ends_that_until_one_gets_there_that_asked, open_auto, b)
{
    static int requests[8];
    learn(b, FIRST, 60000, &requests[0]);
    occupy(b, FIRST + 1, &requests[1]);
    scene_submit(b, (struct scene_job){ 0 }, &requests[2]);
    scene_run(b, FIRST + 2);
    scene_expect_early(b, FIRST + 2);
    scene_end(b, FIRST + 2, END_EXIT, 1);
    scene_submit(b, (struct scene_job){ .is_held = true }, &requests[3]);
    assert_described(
        b, FIRST + 3, "no, when this command was started early, it failed before it had its GPUs");
    core_hold(b->core, b->now_ms, b->now_ms, &scene_owner, FIRST + 3, true, &requests[5]);
    scene_settle(b);
    assert_int_equal(scene_job(b, FIRST + 3)->state, JOB_QUEUED);
    core_hold(b->core, b->now_ms, b->now_ms, &scene_owner, FIRST + 3, false, &requests[6]);
    scene_submit(b, (struct scene_job){ .is_early = true }, &requests[4]);
    scene_run(b, FIRST + 4);
    scene_expect_early(b, FIRST + 4);
    assert_described(
        b, FIRST + 3, "no, when this command was started early, it failed before it had its GPUs");
    scene_pass(b, 10); // of which it waits for four
    scene_end(b, FIRST + 1, END_EXIT, 0);
    scene_expect_granted(b, FIRST + 4);
    scene_pass(b, 1);
    _cleanup_free_ char *text = core_describe_early(b->core, core_find(b->core, FIRST + 3));
    assert_int_equal(strncmp(text, "yes, ", 5), 0);
}

/* No time passed before one waited, as far as two clocks can tell. */
CASE(one_that_opened_its_gpu_at_once_has_done_so_within_no_time, open_auto, b)
{
    static int requests[8];
    occupy(b, FIRST, &requests[0]);
    scene_submit(b, (struct scene_job){ .is_early = true }, &requests[1]);
    scene_run(b, FIRST + 1);
    scene_pass(b, 2); // scene_answer() says that it has waited for longer
    scene_end(b, FIRST, END_EXIT, 0);
    scene_expect_granted(b, FIRST + 1);
    scene_submit(b, (struct scene_job){ .is_held = true }, &requests[2]);
    assert_described(b, FIRST + 2, "no, this command has used a GPU within 1ms of its start");
}

/* It failed as whatever runs there does: nothing follows from that. */
CASE(one_that_ends_otherwise_changes_nothing, open_auto, b)
{
    static int requests[8];
    static const struct {
        enum job_end end;
        int exit_code;
    } ends[] = { { END_EXIT, 0 }, { END_CANCELLED, 0 } };
    learn(b, FIRST, 60000, &requests[0]);
    occupy(b, FIRST + 1, &requests[1]);
    for (uint64_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        scene_submit(b, (struct scene_job){ 0 }, &requests[2 + i]);
        scene_run(b, FIRST + 2 + i);
        scene_expect_early(b, FIRST + 2 + i);
        scene_end(b, FIRST + 2 + i, ends[i].end, ends[i].exit_code);
    }
    scene_submit(b, (struct scene_job){ 0 }, &requests[4]);
    scene_run(b, FIRST + 4);
    scene_expect_early(b, FIRST + 4);
}
