/* SPDX-License-Identifier: MIT */
/*
 * The only way in which the core changes: an event is applied in memory at once, added to the open batch
 * (core/batch.c), and passed to the concerns. Also maintains the lists derived from a job's state: jobs that
 * hold resources, and ended jobs.
 *
 * A commit writes each page that it changes as a whole, so a few changes cost as much as one. Most must be
 * durable at once, because a client or a GPU waits for them. Those of the table below may wait for others:
 *
 * - A start, which is often followed by its end.
 * - The end of an element of an array that has another one behind it (job/behind.h): that one begins without
 *   mgpud. What follows from the end in the same turn waits with it: the count of the array, the GPUs of
 *   the one behind, and the next element, which is put behind that one.
 *
 * Whatever waits is held back like every change that is not durable: it is not shown, its report is not
 * acknowledged, and its node receives no order. A reply, to a client that waits for the job or just asks for
 * it, ends the wait (core/batch.c), as does any other change.
 */
#include "controller/core/change.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/specs.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/behind.h"

void core_note_done(struct core *core, struct core_entry *entry)
{
    *(core->done_last != NULL ? &core_make_extra(core->done_last)->done_after : &core->done_first) = entry;
    core->done_last = entry;
    core->n_done++;
}

void core_trim_done(struct core *core)
{
    while (
        core->n_done > core->options.recent_done_max && core->done_first->changed_in <= core->durable_batch) {
        struct core_entry *entry = core->done_first;
        core->done_first = core_extra(entry)->done_after;
        if (core->done_first == NULL)
            core->done_last = NULL;
        core_hook_gone(core, entry);
        job_table_remove(&core->jobs, entry);
        core->n_done--;
    }
}

void core_activate(struct core *core, struct core_entry *entry)
{
    core_make_extra(entry)->active_after = core->active_first;
    core_make_extra(entry)->active_ms = core->now_ms;
    if (core->active_first != NULL)
        core_make_extra(core->active_first)->active_before = entry;
    core->active_first = entry;
    core_enter_nodes(core, entry);
}

static void deactivate(struct core *core, struct core_entry *entry)
{
    struct core_extra *extra = core_make_extra(entry);
    struct core_entry *before = take_ptr(extra->active_before), *after = take_ptr(extra->active_after);
    *(before != NULL ? &core_make_extra(before)->active_after : &core->active_first) = after;
    if (after != NULL)
        core_make_extra(after)->active_before = before;
}

static void apply(struct core *core, struct core_entry *entry, const struct job_event *event)
{
    struct job *job = entry->job;
    struct error err = { 0 };
    bool was_active = job_state_is_active(job->state);
    if (was_active)
        core_leave_nodes(core, entry); // the event may take the nodes from the job
    if (job_apply(job, event, &err) < 0) {
        log_error("impossible change: %s", err.message);
        abort();
    }
    bool is_active = job_state_is_active(job->state);
    if (is_active && !was_active)
        core_activate(core, entry);
    else if (is_active)
        core_enter_nodes(core, entry);
    else if (was_active)
        deactivate(core, entry);
}

/* --- how long its commit may wait --- */

static int64_t of_element(const struct core *core, const struct core_entry *entry)
{
    const struct core_entry *array = core_extra(entry)->array;
    return array != NULL ? core_extra(array)->pace.patience_ms : 0;
}

static int64_t of_start(const struct core *core, const struct core_entry *entry)
{
    int64_t usual_ms = entry->job->array_job != 0 ? START_PATIENCE_MS : CORE_PATIENCE_MS;
    int64_t patience_ms = of_element(core, entry);
    return patience_ms > usual_ms ? patience_ms : usual_ms;
}

/* An element is split off its array in the same turn. */
static int64_t of_submit(const struct core *core, const struct core_entry *entry)
{
    return entry->job->array_job != 0 ? ELEMENT_PATIENCE_MS : 0;
}

/* The one behind begins by itself if its node has received it. */
static int64_t of_end(const struct core *core, const struct core_entry *entry)
{
    const struct core_entry *follower = core_extra(entry)->follower;
    bool begins = follower != NULL && follower->changed_in <= core->durable_batch &&
                  core_extra(follower)->recalled != follower->job->token;
    return begins ? of_element(core, entry) : 0;
}

static int64_t of_allocation(const struct core *core, const struct core_entry *entry)
{
    return job_is_behind(entry->job) ? of_element(core, entry) : 0;
}

static int64_t of_array(const struct core *core, const struct core_entry *entry)
{
    return entry->job->state != JOB_DONE ? core_extra(entry)->pace.patience_ms : 0;
}

static int64_t (*const rules[EVENT_TYPES])(const struct core *core, const struct core_entry *entry) = {
    [EVENT_SUBMITTED] = of_submit,
    [EVENT_ALLOCATED] = of_allocation,
    [EVENT_STARTED] = of_start,
    [EVENT_ENDED] = of_end,
    [EVENT_SPLIT] = of_array,
    [EVENT_MEMBER] = of_array,
    [EVENT_INHERITS] = of_element,
};

int64_t core_patience_ms(
    const struct core *core, const struct core_entry *entry, const struct job_event *event)
{
    return rules[event->type] != NULL ? rules[event->type](core, entry) : 0;
}

/* --- a change --- */

/* Adds the event to the open batch; it is published when that is durable. */
static void record_event(struct core *core, const struct job_event *event, const struct job *job,
    struct spec_bytes *spec, int64_t patience_ms)
{
    struct batch *batch = core_batch(core);
    core_batch_within(core, batch, patience_ms);
    store_batch_add(batch->changes, event, job, spec);
    struct deferred publish = { .kind = DEFERRED_PUBLISH };
    record_copy(&job_event_record, &publish.event, event);
    core_defer(core, publish);
}

static uint64_t bits_of(const struct job_event *event, enum job_state before, enum job_state after)
{
    _Static_assert(CORE_ON(EVENT_TYPES) <= CORE_ON_STOPPING, "there are as many bits as types of events");
    bool is_over = job_state_is_active(before) && !job_state_is_active(after);
    return CORE_ON(event->type) | (after == JOB_STOPPING ? CORE_ON_STOPPING : 0) |
           (is_over ? CORE_ON_OVER : 0) | (before != JOB_DONE && after == JOB_DONE ? CORE_ON_DONE : 0);
}

static void change(
    struct core *core, struct core_entry *entry, struct job_event *event, struct spec_bytes *spec)
{
    struct job *job = entry->job;
    enum job_state before = job->state;
    event->job = job->id;
    event->wall_ms = core->now_ms;
    event->boot_ms = core->boot_ms;
    event->seq = ++core->last_event;
    apply(core, entry, event);
    if (event->ask.count > 0)
        ask_cache_share(&core->asks, &job->ask);
    record_event(core, event, job, spec, core_patience_ms(core, entry, event));
    core_act_later(core, entry);
    if (job->state == JOB_DONE) {
        core_note_done(core, entry);
        core_drop_spec(core, entry);
    }
    const struct core_news news = {
        .event = event, .bits = bits_of(event, before, job->state), .spec = spec, .before = before
    };
    core_hook_event(core, entry, &news);
}

/* An event that cannot be read back would keep every later mgpud from starting, and what is folded must equal
 * what is stored. Limits are enforced where texts are created; this catches any that were missed. */
void core_change(
    struct core *core, struct core_entry *entry, struct job_event *event, struct spec_bytes *spec)
{
    struct error err = { 0 };
    if (record_check(&job_event_record, event, &err) == 0) {
        change(core, entry, event, spec);
        return;
    }
    log_job(LOG_ERROR, entry->job->id, "an event is recorded in part: %s", err.message);
    struct job_event readable;
    record_copy_readable(&job_event_record, &readable, event);
    change(core, entry, &readable, spec);
    event->seq = readable.seq;
    record_clear(&job_event_record, &readable);
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
    record_event(core, &event, NULL, NULL, 0);
}
