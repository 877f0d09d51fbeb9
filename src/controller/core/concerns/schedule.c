/* SPDX-License-Identifier: MIT */
/*
 * The interface between scheduler and jobs. Decisions of a pass become events (the callbacks); every other
 * event is passed to the scheduler, by one function per type, so that a log of events is all that another
 * scheduler needs to decide the same.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/describe.h"
#include "controller/core/enqueue.h"
#include "controller/core/entry.h"
#include "controller/core/park.h"
#include "controller/core/refusal.h"
#include "controller/core/split.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"
#include "controller/core/tables.h"
#include "job/array.h"
#include "job/behind.h"
#include "job/idle.h"
#include "sched/from_record.h"

#define RESTORE_BACKOFF_MS 10000 // delay after a node could not begin to restore a job

struct core_schedule {
    uint64_t *never; // jobs whose dependency became impossible to satisfy in this turn
    size_t n_never;
};

/* --- what the scheduler decides --- */

/* A grant without a node is on the node of rank 0, whatever the order of the allocation. */
static void write_same_grants(const struct core *core, const struct job *job,
    const struct allocation *allocation, struct record_list *ret)
{
    const char *first = sched_cluster(core->sched)->nodes[allocation->nodes[0].node].name;
    core_write_grants(core, allocation, ret);
    struct gpu_grant *grants = ret->items;
    for (size_t i = 0; i < ret->count; i++) {
        char *node = grants[i].node != NULL ? grants[i].node : xstrdup(first);
        bool is_first = text_equal(node, job->node);
        grants[i].node = is_first ? NULL : node;
        if (is_first)
            free(node);
    }
}

/* A parked job gets its GPUs back. */
static void restore(struct core *core, struct core_entry *entry, const struct allocation *allocation)
{
    _cleanup_(job_event_clear) struct job_event event = { .type = EVENT_RESTORING,
        .attempt = entry->job->attempt,
        .node = xstrdup(entry->job->node),
        .cpu_milli = allocation->nodes[0].cpu_milli };
    write_same_grants(core, entry->job, allocation, &event.gpus);
    core_change(core, entry, &event, NULL);
}

static uint64_t start(void *arg, uint64_t job, const struct allocation *allocation)
{
    struct core *core = arg;
    struct core_entry *entry = core_find(core, job);
    uint32_t index;
    if (job_is_array(entry->job) && array_first(entry->job->array_left, &index))
        entry = core_split(core, entry, index, entry->job->ask->after);
    if (job_is_parked(entry->job))
        restore(core, entry, allocation);
    else
        core_allocate(core, entry, allocation, false);
    return entry->job->id;
}

static void preempt(void *arg, uint64_t job, const char *why)
{
    struct core *core = arg;
    struct core_entry *entry = core_find(core, job);
    if (entry->job->state != JOB_STARTING && entry->job->state != JOB_RUNNING)
        return; // it is being stopped already
    if (job_park(entry->job)->phase == PARK_SAVING ||
        (entry->job->ask->park_on_preempt && core_park_job(core, entry, PARK_PREEMPTED)))
        return; // it returns its GPUs without losing its work
    bool is_idle = entry->job->idle_level == IDLE_YIELDS && !entry->job->ask->preemptible;
    struct job_event event = {
        .type = EVENT_PREEMPTED,
        .attempt = entry->job->attempt,
        .text = xstrdup(is_idle ? "it left its GPUs unused, and another job needs them" : why),
    };
    core_change(core, entry, &event, NULL);
    job_event_clear(&event);
}

/* It borrowed them, or has refused to be parked. */
static void reclaim(void *arg, uint64_t job, uint64_t parked)
{
    struct core *core = arg;
    struct core_entry *entry = core_find(core, job);
    bool has_refused = core_has_refused(core, entry->job);
    if ((entry->job->state != JOB_STARTING && entry->job->state != JOB_RUNNING) ||
        job_park(entry->job)->phase == PARK_SAVING ||
        (entry->job->ask->park_on_preempt && !has_refused && core_park_job(core, entry, PARK_PREEMPTED)))
        return;
    struct job_event event = {
        .type = EVENT_PREEMPTED,
        .attempt = entry->job->attempt,
        .park_cause = PARK_DUE,
        .park_guest = parked,
        .text = xasprintf("its GPUs are due to job %" PRIu64 ", which was parked", parked),
    };
    core_change(core, entry, &event, NULL);
    job_event_clear(&event);
}

/* The scheduler's own rule. */
static void park(void *arg, uint64_t job, uint64_t guest)
{
    struct core *core = arg;
    struct core_entry *entry = core_find(core, job);
    if (job_park(entry->job)->phase == PARK_SAVING)
        return; // for another reason
    if (!core_park_for(core, entry, guest != 0 ? PARK_SHORTER : PARK_DUE, guest))
        sched_park_refused(core->sched, core->now_ms, job);
}

static bool may_park(void *arg, uint64_t job)
{
    const struct core *core = arg;
    return core_may_park(core, core_find(core, job));
}

static bool may_borrow(void *arg, uint64_t job)
{
    const struct core *core = arg;
    return core_may_borrow(core, core_find(core, job));
}

/* Another job may wait for its end: a long chain must not become deep recursion. */
static void never(void *arg, uint64_t job)
{
    struct core *core = arg;
    core->schedule->never =
        xreallocarray(core->schedule->never, core->schedule->n_never + 1, sizeof(*core->schedule->never));
    core->schedule->never[core->schedule->n_never++] = job;
}

static void unreserve(void *arg, uint64_t reservation)
{
    core_hook_unreserved(arg, reservation);
}

/* --- reports to the scheduler --- */

/* The run time to learn from: only of jobs that ended by themselves or at their time limit. */
static int64_t learnt_run_ms(const struct job_event *event)
{
    switch (event->end) {
    case END_EXIT:
    case END_SIGNAL:
    case END_TIME_LIMIT: return event->run_ms;
    default: return -1;
    }
}

/* It runs without its GPUs, and waits for them like a parked job. */
static void on_allocated(struct core *core, const struct job *job, const struct job_event *event)
{
    if (event->behind != 0) // it waits, but not for a pass
        sched_block(core->sched, core->now_ms, job->id, BLOCK_HELD_USER, 0, TIME_NEVER);
    if (event->is_early != 0)
        core_enqueue_parked(core, core_find(core, job->id), true);
}

static void on_started(struct core *core, const struct job *job, const struct job_event *event)
{
    if (job_is_early(job) || job_is_behind(job)) // without its GPUs, it is not running yet
        sched_began(core->sched, core->now_ms, job->id, core->now_ms);
    else
        sched_started(core->sched, core->now_ms, job->id);
    core_forget_trouble(core, job);
}

/* It is parked, and is not to return. */
static void stay_parked(struct core *core, const struct job *job)
{
    if (job_is_parked(job))
        sched_block(core->sched, core->now_ms, job->id, BLOCK_HELD_USER, 0, TIME_NEVER);
}

static void on_stop(struct core *core, const struct job *job, const struct job_event *event)
{
    if (!job_state_is_active(job->state))
        sched_withdraw(core->sched, core->now_ms, job->id);
    else
        stay_parked(core, job);
}

static void on_preempted(struct core *core, const struct job *job, const struct job_event *event)
{
    stay_parked(core, job);
}

/* It is requeued with other properties: it was preemptible because it was idle, or had another time limit or
 * placement. Its dependencies are settled. */
static void stop_run(struct core *core, const struct job *job)
{
    struct sched_job_status status;
    struct core_entry *entry = core_find(core, job->id);
    sched_stopped(core->sched, core->now_ms, job->id, 0);
    if (!sched_job_status(core->sched, job->id, core->now_ms, &status) ||
        (status.key->request.n_picks == 0 && status.key->is_preemptible == job->ask->preemptible &&
            status.key->limit_ms == job->ask->time_limit_ms && status.key->had_turn == job_had_turn(job) &&
            job->queued_ms != core->now_ms && core_extra(entry)->refused_by == NULL &&
            text_equal(status.key->request.exclude, job->ask->exclude)))
        return;
    const struct job_ask *asked = entry->job->ask;
    struct job_ask ask = *asked;
    ask.after = NULL;
    entry->job->ask = &ask;
    core_enqueue(core, entry, NULL, true);
    entry->job->ask = asked;
}

static void set_hold(struct core *core, const struct job *job)
{
    sched_block(core->sched, core->now_ms, job->id, job->hold,
        (BLOCK_HELD_USER | BLOCK_HELD_ADMIN) & ~job->hold, TIME_NEVER);
}

static void on_returned(struct core *core, const struct job *job, const struct job_event *event)
{
    if (job->state == JOB_DONE) {
        sched_ended(core->sched, core->now_ms, job->id, -1);
        sched_withdraw(core->sched, core->now_ms, job->id); // it was committed behind another job
        return;
    }
    stop_run(core, job);
    set_hold(core, job);
    core_await_retry(core, job);
}

static void on_requeued(struct core *core, const struct job *job, const struct job_event *event)
{
    core_admit_again(core_find(core, job->id));
    stop_run(core, job);
    set_hold(core, job);
    core_await_retry(core, job);
}

static void on_ended(struct core *core, const struct job *job, const struct job_event *event)
{
    sched_ended(core->sched, core->now_ms, job->id, learnt_run_ms(event));
    sched_withdraw(core->sched, core->now_ms, job->id); // given up while it was waiting
}

/* core_enqueue() handles a waiting job. */
static void on_edited(struct core *core, const struct job *job, const struct job_event *event)
{
    if (job_is_parked(job))
        core_enqueue_parked(core, core_find(core, job->id), true);
    sched_relimit(core->sched, core->now_ms, job->id, job->ask->time_limit_ms);
}

static void on_parked(struct core *core, const struct job *job, const struct job_event *event)
{
    bool is_back = job_park(job)->since_ms != event->wall_ms; // nothing was restored
    if (job_is_owed(job)) {
        sched_parked(core->sched, core->now_ms, job->id, job_park(job)->ran_ms);
    } else {
        sched_stopped(core->sched, core->now_ms, job->id, job_park_ran_ms(job));
        core_enqueue_parked(core, core_find(core, job->id), true);
    }
    if (is_back)
        sched_block(core->sched, core->now_ms, job->id, BLOCK_BACKOFF, 0, core->now_ms + RESTORE_BACKOFF_MS);
}

static void on_unparked(struct core *core, const struct job *job, const struct job_event *event)
{
    if (job_park_was_refused(job, event) && park_cause_is_rule(job_park(job)->cause))
        sched_park_refused(core->sched, core->now_ms, job->id);
    on_started(core, job, event);
}

static void on_unpark(struct core *core, const struct job *job, const struct job_event *event)
{
    sched_block(core->sched, core->now_ms, job->id, 0, BLOCK_HELD_USER, TIME_NEVER);
}

static void on_park(struct core *core, const struct job *job, const struct job_event *event)
{
    stay_parked(core, job);
}

static void on_reconciled(struct core *core, const struct job *job, const struct job_event *event)
{
    if (job_park_is_unconfirmed(job))
        stay_parked(core, job);
}

/* The hold of a job that goes back to the queue counts from that time on. */
static void on_hold(struct core *core, const struct job *job, const struct job_event *event)
{
    if (job->state == JOB_QUEUED)
        set_hold(core, job);
}

static void on_idle(struct core *core, const struct job *job, const struct job_event *event)
{
    sched_idle(core->sched, core->now_ms, job->id, job->idle_level == IDLE_YIELDS);
}

static void on_inherits(struct core *core, const struct job *job, const struct job_event *event)
{
    _cleanup_(allocation_clear) struct allocation allocation;
    allocation_of_job(sched_cluster(core->sched), job, &allocation);
    sched_begin(core->sched, core->now_ms, job->id, &allocation, park_run_since(job, core->now_ms));
}

static void (*const notifiers[EVENT_TYPES])(struct core *, const struct job *, const struct job_event *) = {
    [EVENT_ALLOCATED] = on_allocated,
    [EVENT_STARTED] = on_started,
    [EVENT_STOP] = on_stop,
    [EVENT_RETURNED] = on_returned,
    [EVENT_REQUEUED] = on_requeued,
    [EVENT_ENDED] = on_ended,
    [EVENT_EDITED] = on_edited,
    [EVENT_HELD] = on_hold,
    [EVENT_RELEASED] = on_hold,
    [EVENT_IDLE] = on_idle,
    [EVENT_PREEMPTED] = on_preempted,
    [EVENT_PARK] = on_park,
    [EVENT_PARKED] = on_parked,
    [EVENT_UNPARK] = on_unpark,
    [EVENT_UNPARKED] = on_unparked,
    [EVENT_RECONCILED] = on_reconciled,
    [EVENT_INHERITS] = on_inherits,
};

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    if (notifiers[news->event->type] != NULL)
        notifiers[news->event->type](core, job, news->event);
    if ((news->bits & CORE_ON_DONE) != 0)
        sched_resolve_dependents(core->sched, core->now_ms, job->id, core_is_ok(job));
}

static void on_resume(struct core *core, struct core_entry *entry)
{
    if (entry->job->state == JOB_QUEUED)
        core_enqueue(core, entry, NULL, false);
    else if (job_state_is_active(entry->job->state) && job_is_parked(entry->job))
        core_enqueue_parked(core, entry, false);
    else if (job_is_behind(entry->job))
        core_enqueue_behind(core, entry);
    else if (job_state_is_active(entry->job->state))
        core_resume(core, entry);
}

/* Ends jobs with --cancel-if-never whose dependency can never be satisfied. */
static bool run_never(struct core *core)
{
    bool is_changed = false;
    while (core->schedule->n_never > 0) {
        struct core_entry *entry = core_find(core, core->schedule->never[--core->schedule->n_never]);
        struct sched_job_status status;
        bool is_never = entry != NULL && entry->job->state == JOB_QUEUED &&
                        sched_job_status(core->sched, entry->job->id, core->now_ms, &status) &&
                        (status.blockers & BLOCK_NEVER) != 0;
        /* All elements of such an array have their own dependencies (pairs.c). */
        is_never = is_never && !job_is_split_up(entry->job);
        is_never = is_never && entry->job->ask->cancel_if_never && entry->job->stop_reason == END_NONE;
        if (is_never)
            core_stop_job(core, entry, core->options.admin_uid, END_DEPENDENCY);
        is_changed |= is_never;
    }
    return is_changed;
}

static void init(struct core *core)
{
    const struct sched_callbacks callbacks = { .arg = core,
        .start = start,
        .preempt = preempt,
        .park = park,
        .may_park = may_park,
        .reclaim = reclaim,
        .may_borrow = may_borrow,
        .never = never,
        .unreserve = unreserve };
    core->schedule = xcalloc(1, sizeof(*core->schedule));
    core->sched = sched_new(&core->options.sched, &callbacks);
}

static void clear(struct core *core)
{
    sched_free(core->sched);
    free(core->schedule->never);
    free(core->schedule);
}

const struct core_concern core_concern_schedule = {
    .name = "schedule",
    .init = init,
    .free = clear,
    .resume = on_resume,
    .events = CORE_ON_ALL,
    .event = on_event,
    .turn = run_never,
};
