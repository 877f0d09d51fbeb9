/* SPDX-License-Identifier: MIT */
/* The fold of events into a job: what each event changes, what is refused, and what holds in between. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/idle.h"
#include "job/job.h"
#include "unit_test.h"

static struct job_event make_event(enum job_event_type type, uint32_t attempt)
{
    return (struct job_event){ .job = 42, .attempt = attempt, .type = type, .wall_ms = 1000 + type };
}

static void apply(struct job *job, struct job_event event)
{
    struct error err = { 0 };
    assert_int_equal(job_apply(job, &event, &err), 0);
    assert_int_equal(job_invariant(job, &err), 0);
    job_event_clear(&event);
}

static void allocate(struct job *job, uint32_t attempt)
{
    struct job_event event = make_event(EVENT_ALLOCATED, attempt);
    event.token = 77;
    event.node = xstrdup("box");
    event.boot_id = xstrdup("boot");
    gpu_grants_add(&event.gpus, 3, "GPU-3", 0, 0);
    gpu_grants_add(&event.gpus, 1, "GPU-1", 0, 0);
    apply(job, event);
}

static int make_job(void **state)
{
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "sleep");
    strings_add(&spec.command, "a b");
    spec.cwd = xstrdup("/");
    spec.ask.gpus = 2;
    struct job *job = job_new(42, &spec);
    job_spec_clear(&spec);
    struct job_event event = make_event(EVENT_SUBMITTED, 0);
    event.uid = 1000;
    event.gid = 1001;
    apply(job, event);
    *state = job;
    return 0;
}

static int free_job(void **state)
{
    job_free(*state);
    return 0;
}

#define CASE(name, job) TEST_ON(name, struct job *job, make_job, free_job)

CASE(a_submitted_job_is_queued_and_holds_nothing, job)
{
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->uid, 1000);
    assert_int_equal(job->gid, 1001);
    assert_string_equal(job->name, "sleep");
    assert_string_equal(job->summary, "sleep 'a b'");
    assert_int_equal(job->grants.count, 0);
    assert_int_equal(job->submitted_ms, 1000 + EVENT_SUBMITTED);
}

TEST(a_submission_replaces_the_request_of_the_specification)
{
    struct job_spec spec = { .ask.gpus = 1 };
    struct job_ask completed = { .gpus = 1, .time_limit_ms = 600000 };
    _cleanup_(job_freep) struct job *job = job_new(42, &spec);
    struct job_event event = make_event(EVENT_SUBMITTED, 0);
    struct error err = { 0 };
    event.ask = (struct record_list){ .items = &completed, .count = 1 }; // borrowed
    assert_int_equal(job_apply(job, &event, &err), 0);
    assert_int_equal(job->ask->time_limit_ms, 600000);
}

CASE(an_allocated_job_holds_its_gpus_in_the_order_given, job)
{
    allocate(job, 1);
    assert_int_equal(job->state, JOB_STARTING);
    assert_int_equal(job->attempt, 1);
    const struct gpu_grant *grants = job->grants.items;
    assert_int_equal(grants[0].index, 3);
    assert_int_equal(grants[1].index, 1);
    assert_string_equal(job->node, "box");
}

CASE(a_returned_job_gives_everything_back_and_queues_again, job)
{
    allocate(job, 1);
    struct job_event event = make_event(EVENT_RETURNED, 1);
    event.text = xstrdup("the node was restarting");
    apply(job, event);
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->grants.count, 0);
    assert_null(job->node);
    assert_int_equal(job->token, 0);
    assert_string_equal(job->text, "the node was restarting");
    allocate(job, 2);
    assert_int_equal(job->attempt, 2);
}

CASE(a_job_whose_gate_never_opened_is_as_if_never_started, job)
{
    allocate(job, 1);
    apply(job, make_event(EVENT_STARTED, 1));
    assert_int_equal(job->state, JOB_RUNNING);
    apply(job, make_event(EVENT_RETURNED, 1));
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->started_ms, 0);
}

CASE(idleness_lasts_as_long_as_the_attempt, job)
{
    allocate(job, 1);
    apply(job, make_event(EVENT_STARTED, 1));
    struct job_event event = make_event(EVENT_IDLE, 1);
    event.idle_level = IDLE_WARNED;
    event.wall_ms = 7000;
    apply(job, event);
    assert_int_equal(job->state, JOB_RUNNING);
    event.idle_level = IDLE_YIELDS;
    event.wall_ms = 9000;
    apply(job, event);
    assert_int_equal(job->idle_level, IDLE_YIELDS);
    assert_int_equal(job_run(job)->idle_warned_ms, 7000);
    apply(job, make_event(EVENT_PREEMPTED, 1));
    assert_int_equal(job->idle_level, IDLE_YIELDS);
    apply(job, make_event(EVENT_REQUEUED, 1));
    assert_int_equal(job->idle_level, IDLE_NONE);
    assert_int_equal(job_run(job)->idle_warned_ms, 0);
    assert_true(job->ask->preemptible);
}

CASE(idleness_of_another_attempt_or_an_unknown_level_is_refused, job)
{
    struct error err = { 0 };
    allocate(job, 1);
    apply(job, make_event(EVENT_STARTED, 1));
    struct job_event event = make_event(EVENT_IDLE, 2);
    assert_int_equal(job_apply(job, &event, &err), -EPROTO);
    event.attempt = 1;
    event.idle_level = IDLE_LEVELS;
    assert_int_equal(job_apply(job, &event, &err), -EPROTO);
    assert_int_equal(job->idle_level, IDLE_NONE);
}

CASE(an_ended_job_keeps_what_is_to_be_shown, job)
{
    allocate(job, 1);
    struct job_event started = make_event(EVENT_STARTED, 1);
    started.log_path = xstrdup("/log");
    apply(job, started);
    struct job_event ended = make_event(EVENT_ENDED, 1);
    ended.end = END_SIGNAL;
    ended.exit_code = 139;
    ended.signal = 11;
    ended.log_bytes = 5;
    ended.started_wall_ms = 500;
    apply(job, ended);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->exit_code, 139);
    assert_int_equal(job_run(job)->signal, 11);
    assert_int_equal(job->started_ms, 500);
    assert_string_equal(job_run(job)->log_path, "/log");
    assert_int_equal(job->grants.count, 2);
}

CASE(what_belongs_to_an_attempt_is_there_from_the_first_one_on, job)
{
    assert_null(job->run);
    assert_null(job_run(job)->boot_id);
    assert_int_equal(job_node_count(job), 0);
    allocate(job, 1);
    assert_non_null(job->run);
    assert_string_equal(job_run(job)->boot_id, "boot");
}

CASE(a_queued_job_that_is_stopped_is_done_at_once, job)
{
    struct job_event event = make_event(EVENT_STOP, 0);
    event.uid = 1000;
    apply(job, event);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_CANCELLED);
    assert_int_equal(job->stopped_by, 1000);
}

CASE(a_stop_before_the_verdict_ends_as_cancelled_without_running, job)
{
    allocate(job, 1);
    apply(job, make_event(EVENT_STOP, 1));
    assert_int_equal(job->state, JOB_STOPPING);
    apply(job, make_event(EVENT_RETURNED, 1));
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_CANCELLED);
    assert_int_equal(job->started_ms, 0);
}

CASE(a_refused_event_changes_nothing, job)
{
    struct error err = { 0 };
    allocate(job, 1);
    const struct job before = *job;
    struct job_event other_attempt = make_event(EVENT_STARTED, 2);
    assert_int_equal(job_apply(job, &other_attempt, &err), -EPROTO);
    assert_non_null(strstr(err.message, "attempt 2"));
    struct job_event impossible = make_event(EVENT_SUBMITTED, 0);
    assert_int_equal(job_apply(job, &impossible, &err), -EPROTO);
    struct job_event other_job = make_event(EVENT_STARTED, 1);
    other_job.job = 43;
    assert_int_equal(job_apply(job, &other_job, &err), -EPROTO);
    struct job_event no_type = make_event((enum job_event_type)1000, 1);
    assert_int_equal(job_apply(job, &no_type, &err), -EPROTO);
    assert_memory_equal(job, &before, sizeof(before));
}

CASE(an_attempt_number_is_never_skipped, job)
{
    struct job_event event = make_event(EVENT_ALLOCATED, 2);
    assert_int_equal(job_apply(job, &event, NULL), -EPROTO);
    assert_int_equal(job->state, JOB_QUEUED);
}

CASE(the_invariant_notices_what_must_not_be, job)
{
    struct error err = { 0 };
    job->token = 5;
    assert_int_equal(job_invariant(job, &err), -EBADMSG);
    job->token = 0;
    allocate(job, 1);
    struct job_ask ask = *job->ask;
    ask.gpus = 3;
    job_set_ask(job, &ask);
    assert_int_equal(job_invariant(job, &err), -EBADMSG);
    ask.gpus = 2;
    job_set_ask(job, &ask);
    job->end = END_EXIT;
    assert_int_equal(job_invariant(job, &err), -EBADMSG);
    job->state = JOB_DONE;
    assert_int_equal(job_invariant(job, &err), -EBADMSG);
    job->ended_ms = 1;
    assert_int_equal(job_invariant(job, &err), 0);
}

CASE(a_job_that_gives_way_goes_back_and_runs_again, job)
{
    allocate(job, 1);
    apply(job, make_event(EVENT_STARTED, 1));
    struct job_event preempted = make_event(EVENT_PREEMPTED, 1);
    preempted.text = xstrdup("job 7 needs its GPUs");
    apply(job, preempted);
    assert_int_equal(job->state, JOB_STOPPING);
    assert_true(job->is_requeued);
    apply(job, make_event(EVENT_REQUEUED, 1));
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->preemptions, 1);
    assert_int_equal(job->started_ms, 0);
    assert_int_equal(job->grants.count, 0);
    assert_null(job->text); // it would be read as the reason of what comes next
    allocate(job, 2);
    assert_int_equal(job->state, JOB_STARTING);
}

CASE(a_job_that_gives_way_before_it_ran_goes_back_too, job)
{
    allocate(job, 1);
    apply(job, make_event(EVENT_PREEMPTED, 1));
    apply(job, make_event(EVENT_RETURNED, 1));
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->end, END_NONE);
    assert_int_equal(job->preemptions, 1);
}

CASE(a_job_that_ends_while_it_gives_way_is_done, job)
{
    allocate(job, 1);
    apply(job, make_event(EVENT_PREEMPTED, 1));
    struct job_event ended = make_event(EVENT_ENDED, 1);
    ended.end = END_EXIT;
    apply(job, ended);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->preemptions, 0);
}

CASE(a_cancel_wins_over_going_back, job)
{
    struct error err = { 0 };
    allocate(job, 1);
    apply(job, make_event(EVENT_STARTED, 1));
    apply(job, make_event(EVENT_PREEMPTED, 1));
    apply(job, make_event(EVENT_STOP, 1));
    assert_int_equal(job->state, JOB_STOPPING);
    assert_false(job->is_requeued);
    struct job_event requeued = make_event(EVENT_REQUEUED, 1);
    assert_int_equal(job_apply(job, &requeued, &err), -EPROTO);
    apply(job, make_event(EVENT_RETURNED, 1));
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_CANCELLED);
}

CASE(a_stop_gives_the_end_that_it_names, job)
{
    struct job_event event = make_event(EVENT_STOP, 0);
    event.reason = END_DEADLINE;
    apply(job, event);
    assert_int_equal(job->end, END_DEADLINE);
    struct job_event wrong = make_event(EVENT_STOP, 0);
    wrong.reason = END_KINDS;
    assert_int_equal(job_apply(job, &wrong, NULL), -EPROTO);
}

CASE(a_stop_that_is_about_an_attempt_that_never_ran_is_void, job)
{
    struct error err = { 0 };
    allocate(job, 1);
    apply(job, make_event(EVENT_STARTED, 1));
    struct job_event stop = make_event(EVENT_STOP, 1), returned = make_event(EVENT_RETURNED, 1);
    stop.reason = END_TIME_LIMIT;
    apply(job, stop);
    returned.reason = END_GPU_FAULT;
    assert_int_equal(job_apply(job, &returned, &err), -EPROTO);
    assert_non_null(strstr(err.message, "another stop"));
    returned.reason = END_TIME_LIMIT;
    apply(job, returned);
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->stop_reason, END_NONE);
    assert_int_equal(job->end, END_NONE);
    assert_int_equal(job->preemptions, 0);
    allocate(job, 2);
    apply(job, make_event(EVENT_STOP, 2));
    apply(job, make_event(EVENT_RETURNED, 2));
    assert_int_equal(job->end, END_CANCELLED);
}

CASE(a_time_limit_is_remembered_until_the_attempt_is_over, job)
{
    allocate(job, 1);
    apply(job, make_event(EVENT_STARTED, 1));
    struct job_event stop = make_event(EVENT_STOP, 1);
    stop.reason = END_TIME_LIMIT;
    apply(job, stop);
    assert_int_equal(job->stop_reason, END_TIME_LIMIT);
    assert_int_equal(job->end, END_NONE);
}

CASE(a_second_stop_changes_the_terms_and_not_the_end, job)
{
    allocate(job, 1);
    apply(job, make_event(EVENT_STARTED, 1));
    struct job_event stop = make_event(EVENT_STOP, 1);
    stop.reason = END_TIME_LIMIT;
    stop.uid = 0;
    apply(job, stop);
    stop.reason = END_CANCELLED;
    stop.uid = 1000;
    stop.stop_terms = STOP_TERMS_GRACE;
    stop.stop_grace_ms = 50;
    apply(job, stop);
    assert_int_equal(job->stop_reason, END_TIME_LIMIT);
    assert_int_equal(job->stopped_by, 0);
    assert_int_equal(job_run(job)->stop_terms, STOP_TERMS_GRACE);
    assert_int_equal(job_run(job)->stop_grace_ms, 50);
    apply(job, make_event(EVENT_RETURNED, 1));
    assert_int_equal(job->end, END_TIME_LIMIT);
    assert_int_equal(job_run(job)->stop_terms, 0);
}

CASE(a_held_job_does_not_start_until_every_hold_is_gone, job)
{
    struct error err = { 0 };
    struct job_event held = make_event(EVENT_HELD, 0), released = make_event(EVENT_RELEASED, 0);
    held.hold = HOLD_USER | HOLD_ADMIN;
    apply(job, held);
    struct job_event start = make_event(EVENT_ALLOCATED, 1);
    assert_int_equal(job_apply(job, &start, &err), -EPROTO);
    assert_non_null(strstr(err.message, "held"));
    released.hold = HOLD_USER;
    apply(job, released);
    assert_int_equal(job->hold, HOLD_ADMIN);
    released.hold = HOLD_ADMIN;
    apply(job, released);
    allocate(job, 1);
    assert_int_equal(job_apply(job, &held, NULL), -EPROTO);
}

CASE(an_edit_replaces_the_request_while_the_job_waits, job)
{
    struct job_ask ask = { .gpus = 2, .priority = 9, .after = (char *)(uintptr_t) "41" };
    struct job_event edited = make_event(EVENT_EDITED, 0);
    assert_int_equal(job_apply(job, &edited, NULL), -EPROTO);
    edited.ask = (struct record_list){ .items = &ask, .count = 1 };
    edited.name = (char *)(uintptr_t) "new";
    assert_int_equal(job_apply(job, &edited, NULL), 0);
    assert_int_equal(job->ask->priority, 9);
    assert_string_equal(job->ask->after, "41");
    assert_string_equal(job->name, "new");
    ask.array = (char *)(uintptr_t) "0-3";
    assert_int_equal(job_apply(job, &edited, NULL), -EPROTO);
    ask.array = NULL;
    allocate(job, 1);
    assert_int_equal(job_apply(job, &edited, NULL), -EPROTO);
}

CASE(what_is_booked_on_the_nodes_is_kept_until_it_is_given_back, job)
{
    struct job_event event = make_event(EVENT_ALLOCATED, 1);
    event.token = 1;
    event.node = xstrdup("a");
    event.cpu_milli = 2500;
    event.memory = 7;
    gpu_grants_add(&event.gpus, 0, "GPU-0", 1, 0)->share = 500;
    gpu_grants_add(&event.gpus, 0, "GPU-1", 1, 0)->node = xstrdup("b");
    job_nodes_add(&event.nodes, "a", "boot-a");
    job_nodes_add(&event.nodes, "b", "boot-b");
    apply(job, event);
    const struct gpu_grant *grants = job->grants.items;
    assert_int_equal(grants[0].share, 500);
    assert_null(grants[0].node);
    assert_string_equal(grants[1].node, "b");
    assert_int_equal(job_run(job)->cpu_milli, 2500);
    apply(job, make_event(EVENT_RETURNED, 1));
    assert_int_equal(job_run(job)->cpu_milli, 0);
    assert_int_equal(job_run(job)->memory, 0);
}

CASE(an_attempt_on_several_nodes_knows_them_in_order_of_rank, job)
{
    struct job_event event = make_event(EVENT_ALLOCATED, 1);
    event.token = 1;
    event.node = xstrdup("a");
    gpu_grants_add(&event.gpus, 0, "GPU-1", 0, 0)->node = xstrdup("b"); // in another order than the nodes
    gpu_grants_add(&event.gpus, 0, "GPU-0", 0, 0);
    job_nodes_add(&event.nodes, "a", "boot-a");
    job_nodes_add(&event.nodes, "b", "boot-b");
    apply(job, event);
    assert_true(job_is_wide(job));
    assert_int_equal(job_node_count(job), 2);
    assert_string_equal(job_node_name(job, 1), "b");
    assert_string_equal(job_node_boot(job, 1), "boot-b");
    assert_int_equal(job_rank_on(job, "b"), 1);
    assert_int_equal(job_rank_on(job, "c"), -1);
    _cleanup_free_ size_t *gpus = job_count_gpus(job);
    assert_int_equal(gpus[0], 1);
    assert_int_equal(gpus[1], 1);
    assert_int_equal(job_gpu_place(job, "GPU-0"), 0);
    assert_int_equal(job_gpu_place(job, "GPU-1"), 1);
    assert_int_equal(job_gpu_place(job, "GPU-2"), SIZE_MAX);
    assert_true(job_is_rank_on(job, 1, "b"));
    assert_false(job_is_rank_on(job, 0, "b") || job_is_rank_on(job, 2, "b"));
    apply(job, make_event(EVENT_RETURNED, 1));
    assert_false(job_is_wide(job));
    assert_int_equal(job_node_count(job), 0);
}

CASE(several_nodes_begin_with_the_one_that_the_event_names, job)
{
    struct error err = { 0 };
    _cleanup_(job_event_clear) struct job_event event = make_event(EVENT_ALLOCATED, 1);
    event.token = 1;
    event.node = xstrdup("a");
    job_nodes_add(&event.nodes, "b", "boot-b");
    assert_int_equal(job_apply(job, &event, &err), -EPROTO);
    job_nodes_add(&event.nodes, "a", "boot-a");
    assert_int_equal(job_apply(job, &event, &err), -EPROTO);
}

/* Random events, most of them wrong: whatever is accepted keeps the invariant and ends for good. */
TEST(no_order_of_events_breaks_the_invariant)
{
    uint32_t random = 12345;
    for (int round = 0; round < 500; round++) {
        void *made = NULL;
        (void)make_job(&made);
        struct job *job = made;
        for (int i = 0; i < 60; i++) {
            random = random * 1664525U + 1013904223U;
            struct job_event event = make_event(
                (enum job_event_type)((random >> 8) % EVENT_TYPES), job->attempt + (random >> 20) % 2);
            bool was_done = job->state == JOB_DONE;
            event.end = END_EXIT;
            event.reason = (random >> 4) % END_KINDS;
            event.hold = (random >> 5) % 4;
            if (event.type == EVENT_ALLOCATED) {
                event.token = 1;
                event.node = xstrdup("box");
                gpu_grants_add(&event.gpus, 0, "GPU-0", 0, 0);
                gpu_grants_add(&event.gpus, 1, "GPU-1", 0, 0);
            }
            int r = job_apply(job, &event, NULL);
            assert_false(was_done && r == 0);
            assert_int_equal(job_invariant(job, NULL), 0);
            job_event_clear(&event);
        }
        job_free(job);
    }
}
