/* SPDX-License-Identifier: MIT */
/*
 * A job that starts before its GPU is free, and what can happen to the one that has the GPU, to itself and to
 * their node until it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/counts.h"
#include "early_scene.h"

#define FIRST     11U // has the GPU
#define NEXT      12U // starts early for it
#define OTHER     13U
#define BACKOFF_S 10 // after a node could not give a job its GPUs
#define LIMIT_S   300
#define LONG_S    1800
#define AFTERWARDS_S                                                                                         \
    60 // seconds: a shepherd, and then the controller, end a job within this time after its limit

static int one, two, three, asked;

static int open_behind(void **state, int64_t seconds)
{
    (void)scene_open(state);
    struct bench *b = *state;
    scene_submit(b, (struct scene_job){ .limit_s = seconds }, &one);
    scene_run(b, FIRST);
    return 0;
}

/* FIRST is expected to end in a minute. */
static int open_soon(void **state)
{
    return open_behind(state, 60);
}

static int open_late(void **state)
{
    return open_behind(state, LONG_S);
}

/* And NEXT runs without its GPU. */
static int open_early(void **state)
{
    (void)open_soon(state);
    struct bench *b = *state;
    scene_submit(b,
        (struct scene_job){ .is_early = true, .limit_s = LIMIT_S, .cpu_milli = 1000, .memory = 1 << 30 },
        &two);
    scene_run(b, NEXT);
    return 0;
}

#define CASE(name, open, b) TEST_ON(name, struct bench *b, open, scene_close)

static void edit_limit(struct bench *b, uint64_t id, int64_t seconds, int *request)
{
    _cleanup_(job_ask_clear) struct job_ask ask;
    job_ask_copy(&ask, scene_job(b, id)->ask);
    ask.time_limit_ms = seconds * SECOND_MS;
    core_edit(b->core, b->now_ms, b->now_ms, &scene_admin, id, &ask, NULL, NULL, request);
    scene_settle(b);
    assert_int_equal(bench_answer(b, request)->code, 0);
}

/* --- which job, and when --- */

CASE(the_next_job_starts_while_its_gpu_is_used, open_soon, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true, .limit_s = LIMIT_S }, &two);
    assert_true(scene_launch_of(b, NEXT).is_early);
    assert_int_equal(scene_launch_of(b, NEXT).n_gpus, 1);
    assert_false(scene_launch_of(b, FIRST).is_early);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_STARTING);
    scene_run(b, NEXT);
    scene_expect_early(b, NEXT);
    assert_true(job_holds_gpus(scene_job(b, FIRST)));
    scene_pass(b, 10);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_expect_granted(b, NEXT);
    assert_int_equal(
        job_park(scene_job(b, NEXT))->saved_ms / SECOND_MS, 6); // of ten seconds it waited for four
    assert_int_equal(core_counts(b->core)->early_starts, 1);
    assert_int_equal(core_counts(b->core)->parked_ms, 0);
}

CASE(it_starts_when_its_gpu_comes_near, open_late, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true }, &two);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    scene_pass(b, LONG_S - 120 - 10);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    scene_pass(b, 20);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_STARTING);
    assert_true(scene_launch_of(b, NEXT).is_early);
}

CASE(it_starts_when_the_one_before_it_is_being_stopped, open_late, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true }, &two);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    core_cancel(b->core, b->now_ms, b->now_ms, &scene_owner, FIRST, -1, &asked);
    scene_settle(b);
    scene_run(b, NEXT);
    scene_expect_early(b, NEXT);
    scene_end(b, FIRST, END_CANCELLED, 0);
    scene_expect_granted(b, NEXT);
}

CASE(one_that_is_held_starts_when_it_is_released, open_soon, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true, .is_held = true }, &two);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    core_hold(b->core, b->now_ms, b->now_ms, &scene_owner, NEXT, true, &asked);
    scene_settle(b);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_STARTING);
    assert_true(scene_launch_of(b, NEXT).is_early);
}

/* Nothing but the clock changes until then. */
CASE(one_that_may_not_begin_yet_starts_when_it_may, open_soon, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true, .begin_s = 30 }, &two);
    scene_pass(b, 29);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    scene_pass(b, 2);
    scene_run(b, NEXT);
    scene_expect_early(b, NEXT);
}

CASE(one_that_refuses_it_and_one_of_a_site_that_does_start_as_usual, open_soon, b)
{
    scene_submit(b, (struct scene_job){ .is_unwilling = true }, &two);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    core_cancel(b->core, b->now_ms, b->now_ms, &scene_owner, NEXT, -1, &asked);
    scene_settle(b);
    b->options.early.mode = EARLY_NEVER;
    bench_configure(b);
    scene_submit(b, (struct scene_job){ .is_early = true }, &three);
    scene_pass(b, 1);
    assert_int_equal(scene_job(b, OTHER)->state, JOB_QUEUED);
    _cleanup_free_ char *why = core_describe_early(b->core, core_find(b->core, OTHER));
    assert_string_equal(why, "no, this mgpud starts no job early (early: never)");
    scene_end(b, FIRST, END_EXIT, 0);
    assert_false(scene_launch_of(b, OTHER).is_early);
    scene_run(b, OTHER);
    assert_true(job_holds_gpus(scene_job(b, OTHER)));
}

CASE(none_starts_for_a_gpu_for_which_one_runs_already, open_early, b)
{
    scene_submit(b,
        (struct scene_job){ .is_early = true, .limit_s = 10, .cpu_milli = 1000, .memory = 1 << 30 }, &three);
    scene_pass(b, 1);
    assert_int_equal(scene_job(b, OTHER)->state, JOB_QUEUED);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_expect_granted(b, NEXT); // though the other one is shorter
    assert_false(job_holds_gpus(scene_job(b, OTHER)));
}

CASE(none_starts_on_a_node_that_cannot_do_it, scene_open, b)
{
    const struct scene_node node = { .link = SCENE_LINK, .name = "box", .lacks_early = true };
    core_link_down(b->core, b->now_ms, b->now_ms, SCENE_LINK);
    assert_int_equal(scene_hello(b, node), 0);
    scene_submit(b, (struct scene_job){ .limit_s = 60 }, &one);
    scene_run(b, FIRST);
    scene_submit(b, (struct scene_job){ .is_early = true, .limit_s = LIMIT_S }, &two);
    scene_pass(b, 30);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    scene_end(b, FIRST, END_EXIT, 0);
    assert_false(scene_launch_of(b, NEXT).is_early);
}

CASE(a_drained_node_begins_nothing_and_what_began_there_waits, open_early, b)
{
    core_drain(b->core, b->now_ms, b->now_ms, &scene_admin, "box", "a fan is broken", 0, false, &asked);
    scene_settle(b);
    scene_submit(b, (struct scene_job){ .is_early = true }, &three);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_pass(b, 60);
    assert_int_equal(scene_job(b, OTHER)->state, JOB_QUEUED);
    scene_expect_early(b, NEXT);
    int resumed;
    core_drain(b->core, b->now_ms, b->now_ms, &scene_admin, "box", NULL, 0, true, &resumed);
    scene_settle(b);
    scene_expect_granted(b, NEXT);
}

/* --- the one before it --- */

CASE(when_that_is_parked_it_gets_the_gpu_and_the_parked_one_waits_for_it, open_early, b)
{
    int again;
    core_park(b->core, b->now_ms, b->now_ms, &scene_owner, FIRST, 0, &asked);
    scene_settle(b);
    assert_int_equal(scene_phase(b, FIRST), PARK_SAVING);
    scene_expect_early(b, NEXT);
    scene_answer(b, FIRST, PARK_SAVE, PARK_DONE);
    scene_expect_granted(b, NEXT);
    core_unpark(b->core, b->now_ms, b->now_ms, &scene_owner, FIRST, &again);
    scene_settle(b);
    assert_int_equal(scene_phase(b, FIRST), PARK_WAITING);
    scene_end(b, NEXT, END_EXIT, 0);
    assert_int_equal(scene_phase(b, FIRST), PARK_RESTORING);
    scene_answer(b, FIRST, PARK_RETURN, PARK_DONE);
    assert_int_equal(scene_phase(b, FIRST), PARK_NONE);
}

CASE(when_that_refuses_to_be_parked_it_waits_on, open_early, b)
{
    core_park(b->core, b->now_ms, b->now_ms, &scene_owner, FIRST, 0, &asked);
    scene_settle(b);
    scene_answer(b, FIRST, PARK_SAVE, PARK_REFUSED);
    assert_int_equal(scene_phase(b, FIRST), PARK_NONE);
    scene_expect_early(b, NEXT);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_expect_granted(b, NEXT);
}

CASE(when_that_is_extended_it_waits_on_and_its_own_time_does_not_pass, open_early, b)
{
    edit_limit(b, FIRST, 36000, &asked);
    scene_pass(b, 10 * LIMIT_S);
    scene_expect_early(b, NEXT);
    assert_int_equal(scene_job(b, FIRST)->state, JOB_RUNNING);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_expect_granted(b, NEXT);
    scene_pass(b, LIMIT_S - 1);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_RUNNING);
    scene_pass(b, 1 + AFTERWARDS_S);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_STOPPING);
    assert_int_equal(scene_job(b, NEXT)->stop_reason, END_TIME_LIMIT);
}

/* Its expected end is over, and nothing follows from that. */
CASE(when_that_never_ends_it_waits_until_somebody_cancels_it, open_early, b)
{
    edit_limit(b, FIRST, 0, &asked);
    scene_pass(b, 30 * 24 * 3600);
    scene_expect_early(b, NEXT);
    int cancelled;
    core_cancel(b->core, b->now_ms, b->now_ms, &scene_owner, NEXT, -1, &cancelled);
    scene_settle(b);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_STOPPING);
    scene_end(b, NEXT, END_CANCELLED, 0);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_DONE);
    assert_int_equal(job_early_ms(scene_job(b, NEXT), b->now_ms) / (24 * 3600 * SECOND_MS), 30);
    assert_int_equal(scene_job(b, FIRST)->state, JOB_RUNNING);
    scene_submit(b, (struct scene_job){ .is_early = true }, &three);
    assert_int_equal(scene_job(b, OTHER)->state, JOB_QUEUED); // nobody knows when that will be
}

/* The GPU goes in the turn in which the loss is recorded. */
CASE(when_that_ends_because_its_gpu_fails_it_waits_for_the_gpu, open_early, b)
{
    struct gpu_state gpu = {
        .uuid = (char[]){ "GPU-box" }, .numa = -1, .memory_bytes = 24ULL << 30, .is_lost = 1
    };
    struct message_gpus lost = { .gpus = { .items = &gpu, .count = 1 } };
    scene_say(b, MESSAGE_GPUS, &lost);
    scene_end(b, FIRST, END_GPU_FAULT, 0);
    scene_pass(b, 1);
    scene_expect_early(b, NEXT);
    assert_int_equal(scene_take_order(b, NEXT), 0);
}

/* --- itself --- */

CASE(what_it_has_of_its_node_is_booked_until_it_ends, open_early, b)
{
    const struct cluster_node *node = &sched_cluster(core_sched(b->core))->nodes[0];
    assert_int_equal(job_run(scene_job(b, NEXT))->cpu_milli, 0);
    assert_int_equal(job_park(scene_job(b, NEXT))->kept_cpu_milli, 1000);
    assert_int_equal(node->cpu_kept, 1000);
    assert_int_equal(node->memory_kept, 1 << 30);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_expect_granted(b, NEXT);
    assert_int_equal(node->cpu_kept, 1000);
    scene_end(b, NEXT, END_EXIT, 0);
    assert_int_equal(node->cpu_kept, 0);
    assert_int_equal(node->memory_kept, 0);
}

CASE(its_gpu_may_be_free_before_its_start_is_reported, open_soon, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true, .limit_s = LIMIT_S }, &two);
    scene_end(b, FIRST, END_EXIT, 0);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_STARTING);
    assert_int_equal(scene_phase(b, NEXT), PARK_RESTORING);
    assert_int_equal(scene_take_order(b, NEXT), 0); // to a node that may not have it yet
    scene_run(b, NEXT);
    scene_expect_granted(b, NEXT);
}

CASE(one_that_is_cancelled_leaves_the_gpu_to_those_behind_it, open_early, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true }, &three);
    core_cancel(b->core, b->now_ms, b->now_ms, &scene_owner, NEXT, -1, &asked);
    scene_settle(b);
    scene_end(b, FIRST, END_EXIT, 0); // while NEXT is being ended: it gets nothing any more
    assert_int_equal(scene_phase(b, NEXT), PARK_WAITING);
    assert_int_equal(scene_take_order(b, NEXT), 0);
    scene_run(b, OTHER);
    assert_true(job_holds_gpus(scene_job(b, OTHER)));
    scene_end(b, NEXT, END_CANCELLED, 0);
    assert_int_equal(scene_job(b, NEXT)->end, END_CANCELLED);
}

CASE(one_that_is_cancelled_while_it_is_given_its_gpu_keeps_it_until_it_has_ended, open_early, b)
{
    scene_submit(b, (struct scene_job){ 0 }, &three);
    scene_end(b, FIRST, END_EXIT, 0);
    assert_int_equal(scene_phase(b, NEXT), PARK_RESTORING);
    core_cancel(b->core, b->now_ms, b->now_ms, &scene_owner, NEXT, -1, &asked);
    scene_settle(b);
    scene_answer(b, NEXT, PARK_RETURN, PARK_DONE); // too late to matter
    assert_true(job_holds_gpus(scene_job(b, NEXT)));
    assert_int_equal(scene_job(b, OTHER)->state, JOB_QUEUED);
    scene_end(b, NEXT, END_CANCELLED, 0);
    scene_run(b, OTHER);
}

CASE(it_is_held_no_more_and_its_request_is_not_changed, open_early, b)
{
    _cleanup_(job_ask_clear) struct job_ask larger;
    core_hold(b->core, b->now_ms, b->now_ms, &scene_owner, NEXT, false, &asked);
    scene_settle(b);
    assert_int_equal(bench_answer(b, &asked)->code, -EALREADY);
    job_ask_copy(&larger, scene_job(b, NEXT)->ask);
    larger.memory *= 2;
    core_edit(b->core, b->now_ms, b->now_ms, &scene_admin, NEXT, &larger, NULL, NULL, &three);
    scene_settle(b);
    assert_int_equal(bench_answer(b, &three)->code, -EALREADY);
    scene_expect_early(b, NEXT);
}

CASE(its_limit_is_edited_and_begins_with_its_gpu, open_early, b)
{
    edit_limit(b, NEXT, 60, &asked);
    scene_pass(b, 20);
    scene_expect_early(b, NEXT);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_expect_granted(b, NEXT);
    scene_pass(b, 59);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_RUNNING);
    scene_pass(b, 1 + AFTERWARDS_S);
    assert_int_equal(scene_job(b, NEXT)->stop_reason, END_TIME_LIMIT);
}

CASE(an_urgent_job_gets_the_gpu_before_it, open_early, b)
{
    scene_submit(b, (struct scene_job){ .priority = 100, .limit_s = 60 }, &three);
    assert_int_equal(scene_job(b, OTHER)->state, JOB_QUEUED);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_run(b, OTHER);
    scene_expect_early(b, NEXT);
    scene_end(b, OTHER, END_EXIT, 0);
    scene_expect_granted(b, NEXT);
}

CASE(one_that_is_parked_meanwhile_waits_again_when_it_is_unparked, open_early, b)
{
    core_park(b->core, b->now_ms, b->now_ms, &scene_owner, NEXT, 0, &asked);
    scene_settle(b);
    assert_int_equal(scene_phase(b, NEXT), PARK_PARKED);
    assert_true(job_is_stopped(scene_job(b, NEXT)));
    scene_end(b, FIRST, END_EXIT, 0);
    scene_pass(b, 60);
    assert_int_equal(scene_take_order(b, NEXT), 0);
    core_unpark(b->core, b->now_ms, b->now_ms, &scene_owner, NEXT, &three);
    scene_settle(b);
    scene_expect_granted(b, NEXT);
}

CASE(a_refusal_leaves_it_early_and_is_tried_again, open_early, b)
{
    scene_end(b, FIRST, END_EXIT, 0);
    assert_int_equal(scene_phase(b, NEXT), PARK_RESTORING);
    assert_int_not_equal(scene_take_order(b, NEXT), 0);
    scene_answer(b, NEXT, PARK_RETURN, PARK_REFUSED);
    scene_expect_early(b, NEXT);
    assert_string_equal(job_park(scene_job(b, NEXT))->text, "its filter cannot be changed");
    scene_pass(b, BACKOFF_S + 1);
    scene_expect_granted(b, NEXT);
    assert_null(job_park(scene_job(b, NEXT))->text);
}

CASE(one_whose_filter_nobody_knows_is_ended_and_keeps_the_gpu_until_then, open_early, b)
{
    scene_submit(b, (struct scene_job){ 0 }, &three);
    scene_end(b, FIRST, END_EXIT, 0);
    scene_answer(b, NEXT, PARK_RETURN, PARK_LOST);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_STOPPING);
    assert_int_equal(scene_job(b, NEXT)->stop_reason, END_GPU_FAULT);
    assert_true(job_holds_gpus(scene_job(b, NEXT)));
    assert_int_equal(scene_job(b, OTHER)->state, JOB_QUEUED);
    scene_end(b, NEXT, END_GPU_FAULT, 0);
    scene_run(b, OTHER);
}

CASE(an_attempt_that_never_ran_is_followed_by_a_usual_one, open_soon, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true }, &two);
    struct sent launch = scene_launch_of(b, NEXT);
    assert_true(launch.is_early);
    assert_int_equal(bench_returned(b, SCENE_LINK, &launch), 0);
    scene_settle(b);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    assert_int_equal(job_park(scene_job(b, NEXT))->kept_cpu_milli, 0);
    scene_pass(b, 59);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED); // for its GPU
    _cleanup_free_ char *why = core_describe_early(b->core, core_find(b->core, NEXT));
    assert_string_equal(why, "no, an attempt was given back, and the next one starts as usual");
    scene_end(b, FIRST, END_EXIT, 0);
    scene_pass(b, 1);
    assert_int_equal(scene_job(b, NEXT)->attempt, 2);
    assert_false(scene_launch_of(b, NEXT).is_early);
    assert_int_equal(job_park(scene_job(b, NEXT))->is_early, 0);
}

/* --- its node, and the controller --- */

static void lose_node(struct bench *b)
{
    core_link_down(b->core, b->now_ms, b->now_ms, SCENE_LINK);
    scene_settle(b);
    core_fence(b->core, b->now_ms, b->now_ms, &scene_admin, "box", "it has no power", &asked);
    scene_settle(b);
    assert_int_equal(bench_answer(b, &asked)->code, 0);
}

CASE(with_a_lost_node_both_jobs_are_lost, open_early, b)
{
    lose_node(b);
    assert_int_equal(scene_job(b, FIRST)->end, END_NODE_LOST);
    assert_int_equal(scene_job(b, NEXT)->end, END_NODE_LOST);
    assert_int_equal(scene_phase(b, NEXT), PARK_NONE);
    assert_int_equal(job_park(scene_job(b, NEXT))->kept_memory, 0);
    assert_int_equal(job_park(scene_job(b, NEXT))->granted_ms, 0);
}

CASE(one_that_goes_on_elsewhere_has_its_gpu_there_from_the_start, open_soon, b)
{
    scene_submit(b, (struct scene_job){ .is_early = true, .goes_on = true, .limit_s = LIMIT_S }, &two);
    scene_run(b, NEXT);
    scene_expect_early(b, NEXT);
    lose_node(b);
    assert_int_equal(scene_job(b, NEXT)->state, JOB_QUEUED);
    assert_int_equal(scene_hello(b, (struct scene_node){ .link = SCENE_LINK + 1, .name = "other" }), 0);
    scene_pass(b, 60);
    assert_int_equal(scene_job(b, NEXT)->attempt, 2);
    assert_string_equal(scene_job(b, NEXT)->node, "other");
    assert_false(scene_launch_of(b, NEXT).is_early);
    assert_true(job_holds_gpus(scene_job(b, NEXT)));
}

/* What a node says when it connects to a controller that has just started. */
static void find_both(struct bench *b, enum attempt_phase first, enum park_seen seen)
{
    const struct job *next = scene_job(b, NEXT);
    const struct known_attempt known[] = {
        { .id = { .job = NEXT, .attempt = 1 },
            .token = next->token,
            .phase = PHASE_RUNNING,
            .terms = job_run(next)->terms,
            .park_number = job_park(next)->number,
            .park_seen = seen },
        { .id = { .job = FIRST, .attempt = 1 }, .token = scene_job(b, FIRST)->token, .phase = first },
    };
    b->n_sent = 0;
    const struct scene_node box = { .link = SCENE_LINK,
        .name = "box",
        .known = known,
        .n_known = scene_job(b, FIRST)->state == JOB_DONE ? 1 : 2 };
    assert_int_equal(scene_hello(b, box), 0);
}

CASE(a_controller_that_starts_while_it_waits_gives_it_its_gpu, open_early, b)
{
    bench_restart_all(b);
    scene_expect_early(b, NEXT);
    find_both(b, PHASE_RUNNING, PARK_SEEN_PARKED);
    scene_expect_early(b, NEXT);
    scene_submit(b, (struct scene_job){ .is_early = true }, &three);
    assert_int_equal(scene_job(b, OTHER)->state, JOB_QUEUED); // there is one for this GPU
    b->sent[b->n_sent++] = (struct sent){
        .id = MESSAGE_LAUNCH, .job = FIRST, .attempt = 1, .token = scene_job(b, FIRST)->token
    };
    scene_end(b, FIRST, END_EXIT, 0);
    scene_expect_granted(b, NEXT);
    assert_int_equal(sched_cluster(core_sched(b->core))->nodes[0].cpu_kept, 1000);
}

CASE(a_controller_that_starts_in_the_middle_of_a_grant_orders_it_again, open_early, b)
{
    scene_end(b, FIRST, END_EXIT, 0);
    uint32_t number = scene_take_order(b, NEXT);
    bench_restart_all(b);
    assert_int_equal(scene_phase(b, NEXT), PARK_RESTORING);
    find_both(b, PHASE_RUNNING, PARK_SEEN_CHANGING);
    assert_int_equal(scene_phase(b, NEXT), PARK_RESTORING);
    assert_int_equal(job_park(scene_job(b, NEXT))->number, number);
    scene_expect_granted(b, NEXT);
}

/* The node has had the order, and its answer was lost. */
CASE(a_node_that_connects_again_is_given_the_order_again, open_early, b)
{
    scene_end(b, FIRST, END_EXIT, 0);
    uint32_t number = scene_take_order(b, NEXT);
    core_link_down(b->core, b->now_ms, b->now_ms, SCENE_LINK);
    scene_settle(b);
    find_both(b, PHASE_RUNNING, PARK_SEEN_RUNNING);
    assert_int_equal(job_park(scene_job(b, NEXT))->number, number);
    scene_expect_granted(b, NEXT);
}

/* A late answer to the order before that one does not count. */
CASE(an_answer_to_another_order_gives_it_nothing, open_early, b)
{
    scene_end(b, FIRST, END_EXIT, 0);
    uint32_t number = scene_take_order(b, NEXT);
    scene_answer(b, NEXT, PARK_RETURN, PARK_REFUSED);
    scene_pass(b, BACKOFF_S + 1);
    assert_int_equal(scene_phase(b, NEXT), PARK_RESTORING);
    assert_true(job_park(scene_job(b, NEXT))->number > number);
    const struct message_park_result late = { .id.job = NEXT,
        .id.attempt = 1,
        .token = scene_job(b, NEXT)->token,
        .number = number,
        .action = PARK_RETURN,
        .outcome = PARK_DONE };
    scene_say(b, MESSAGE_PARK_RESULT, &late);
    assert_int_equal(scene_phase(b, NEXT), PARK_RESTORING);
    scene_expect_granted(b, NEXT);
}
