/* SPDX-License-Identifier: MIT */
/*
 * The core as a whole, and the one way in which it changes: an event is applied in memory at once, joins the
 * open batch (core/batch.c), and the scheduler hears of it (core/schedule.c).
 */
#include "controller/core/core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "controller/core/private.h"

struct core *core_new(const struct core_options *options, const struct core_effects *effects)
{
    struct core *core = xcalloc(1, sizeof(*core));
    core->options = *options;
    core->effects = *effects;
    struct sched_callbacks callbacks = core_callbacks;
    callbacks.arg = core;
    core->sched = sched_new(&options->sched, &callbacks);
    core_configure_accounts(core);
    return core;
}

void core_free(struct core *core)
{
    if (core == NULL)
        return;
    core_batch_free(core->open);
    core_batch_free(core->flying);
    while (core->waiters != NULL) {
        struct waiter *next = core->waiters->next;
        free(core->waiters);
        core->waiters = next;
    }
    for (size_t i = 0; i < core->n_nodes; i++) {
        free(core->nodes[i].name);
        free(core->nodes[i].address);
        free(core->nodes[i].here);
        free(core->nodes[i].boot_before);
        buffer_clear(&core->nodes[i].told);
        record_clear(&message_hello_record, &core->nodes[i].hello);
        core_clear_watches(&core->nodes[i]);
        core_clear_unwanted(&core->nodes[i]);
    }
    free(core->nodes);
    core_clear_questions(core);
    core_clear_outlook(core);
    core_clear_quotas(core);
    core_clear_marks(core);
    core_clear_owners(core);
    core_clear_policies(core);
    core_clear_faults(core);
    core_clear_notices(core);
    sched_free(core->sched);
    key_table_clear(&core->keys);
    job_table_clear(&core->jobs);
    ask_shelf_clear(&core->asks);
    free(core->timers.heap);
    free(core->never);
    free(core);
}

struct sched *core_sched(const struct core *core)
{
    return core->sched;
}

/* --- changes --- */

static void answer_waiters(struct core *core, const struct job *job)
{
    struct waiter **link = &core->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        uint32_t states = waiter->is_for_element ? 1U << JOB_DONE : waiter->states;
        bool is_other_level = waiter->idle_level != IDLE_LEVELS && waiter->idle_level != job->idle_level;
        if (waiter->job != job->id || ((states & (1U << job->state)) == 0 && !is_other_level)) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        core_reply_ok(core, waiter->request, job->id);
        free(waiter);
    }
}

void core_note_done(struct core *core, struct core_job *entry)
{
    *(core->done_last != NULL ? &core_make_extra(core->done_last)->done_after : &core->done_first) = entry;
    core->done_last = entry;
    core->n_done++;
}

/* Forgets the jobs that ended first, beyond the limit; the store still has them. */
static void trim_done(struct core *core)
{
    while (
        core->n_done > core->options.recent_done_max && core->done_first->changed_in <= core->durable_batch) {
        struct core_job *entry = core->done_first;
        core->done_first = core_extra(entry)->done_after;
        if (core->done_first == NULL)
            core->done_last = NULL;
        core_unlink_member(entry);
        job_table_remove(&core->jobs, entry);
        core->n_done--;
    }
}

void core_activate(struct core *core, struct core_job *entry)
{
    core_make_extra(entry)->active_after = core->active_first;
    core_make_extra(entry)->active_ms = core->now_ms;
    if (core->active_first != NULL)
        core_make_extra(core->active_first)->active_before = entry;
    core->active_first = entry;
}

static void deactivate(struct core *core, struct core_job *entry)
{
    struct core_extra *extra = core_make_extra(entry);
    struct core_job *before = take_ptr(extra->active_before), *after = take_ptr(extra->active_after);
    *(before != NULL ? &core_make_extra(before)->active_after : &core->active_first) = after;
    if (after != NULL)
        core_make_extra(after)->active_before = before;
}

static void apply(struct core *core, struct core_job *entry, const struct job_event *event)
{
    struct job *job = entry->job;
    struct error err = { 0 };
    bool was_active = job_state_is_active(job->state);
    if (job_apply(job, event, &err) < 0) {
        log_error("impossible change: %s", err.message);
        abort();
    }
    bool is_active = job_state_is_active(job->state);
    if (is_active && !was_active)
        core_activate(core, entry);
    else if (was_active && !is_active)
        deactivate(core, entry);
}

/* Into the open batch, and out to everybody when that is durable. */
static void record_event(
    struct core *core, const struct job_event *event, const struct job *job, const struct job_spec *spec)
{
    struct batch *batch = core_batch(core);
    /* A start is followed by nothing that waits for it, and often by its end: both can be one commit. */
    batch->is_urgent |= event->type != EVENT_STARTED;
    store_batch_add(batch->changes, event, job, spec);
    struct held publish = { .kind = HELD_PUBLISH };
    record_copy(&job_event_record, &publish.event, event);
    core_hold_back(core, publish);
}

void core_change(
    struct core *core, struct core_job *entry, struct job_event *event, const struct job_spec *spec)
{
    struct job *job = entry->job;
    enum job_state before = job->state;
    event->job = job->id;
    event->wall_ms = core->now_ms;
    event->boot_ms = core->boot_ms;
    event->seq = ++core->last_event;
    apply(core, entry, event);
    if (event->ask.count > 0)
        ask_shelf_share(&core->asks, &job->ask);
    record_event(core, event, job, spec);
    core_act_later(core, entry);
    core_set_due(core, entry);
    core_make_notices(core, job, event, before);
    core_note_stop(core, entry);
    if (job->state == JOB_DONE) {
        core_count_done(core, job->uid);
        core_note_done(core, entry);
        core_drop_spec(core, entry);
    }
    core_tell(core, entry, event, before);
    answer_waiters(core, job);
    if (job->state == JOB_DONE && job->array_job != 0)
        core_member_done(core, entry);
}

void core_change_cluster(struct core *core, const struct cluster_change *change)
{
    struct cluster_change copy = *change;
    struct job_event event = {
        .type = EVENT_CLUSTER,
        .seq = ++core->last_event,
        .wall_ms = core->now_ms,
        .boot_ms = core->boot_ms,
        .uid = change->uid,
        .change = { .items = &copy, .count = 1 },
    };
    record_event(core, &event, NULL, NULL);
}

void core_wait_idle(struct core *core, uint64_t job, uint32_t states, uint32_t idle_level, void *request)
{
    const struct core_job *entry = core_find(core, job);
    if (entry == NULL) {
        struct core_answer answer = { .job = job };
        answer.code = error_set(&answer.err, -ENOENT, "there is no job %" PRIu64, job);
        core_reply(core, request, &answer);
        return;
    }
    bool is_other_level = idle_level != IDLE_LEVELS && idle_level != entry->job->idle_level;
    if (is_other_level || (states & (1U << entry->job->state)) != 0) {
        core_reply_ok(core, request, job);
        return;
    }
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){
        .request = request, .job = job, .states = states, .idle_level = idle_level, .next = core->waiters
    };
    core->waiters = waiter;
}

void core_wait_element(struct core *core, uint64_t array, uint32_t index, uint32_t states, void *request)
{
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){
        .request = request,
        .job = array,
        .states = states,
        .idle_level = IDLE_LEVELS,
        .is_for_element = true,
        .element = index,
        .next = core->waiters,
    };
    core->waiters = waiter;
}

void core_pass_waiters(struct core *core, uint64_t array, uint32_t index, uint64_t job)
{
    for (struct waiter *waiter = core->waiters; waiter != NULL; waiter = waiter->next)
        if (waiter->is_for_element && waiter->job == array && waiter->element == index) {
            waiter->job = job;
            waiter->is_for_element = false;
        }
}

void core_wait(struct core *core, uint64_t job, uint32_t states, void *request)
{
    core_wait_idle(core, job, states, IDLE_LEVELS, request);
}

void core_on_durable(struct core *core, uint64_t id)
{
    struct batch *batch = core->flying;
    if (batch == NULL || batch->id != id)
        return;
    core->flying = NULL;
    core->durable_batch = id;
    core_batch_durable(core, batch);
    core_run_notices(core, core_look_ms(core, 0));
    trim_done(core);
}
