/* SPDX-License-Identifier: MIT */
/*
 * Parked jobs (job/park.h). Sends PARK for a job whose durable state is SAVING or RESTORING, and turns the
 * result into an event. A refusal leaves the job as it was: running, or parked. A job that was to give its
 * GPUs back and cannot be parked is then requeued or ended as if it had not asked for parking.
 *
 * Its GPUs are free with the event `parked`, which is created only from a PARK_RESULT: until then nothing
 * else can be started on them.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/node_view.h"
#include "controller/core/park.h"
#include "controller/core/send.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"
#include "controller/core/tables.h"

struct core_parks {
    int64_t next_ms; // boot clock: the earliest return of a parked job; TIME_NEVER: none
    bool has_memory; // host memory of a job is booked outside the ledger
};

static void act(struct core *core, struct core_entry *entry)
{
    const struct job *job = entry->job;
    uint32_t phase = job_park(job)->phase;
    if (job->state != JOB_RUNNING || (phase != PARK_SAVING && phase != PARK_RESTORING) ||
        entry->changed_in > core->durable_batch)
        return;
    const struct core_node *node = core_find_node(core, job->node);
    if (node != NULL && node->is_up)
        core_send_park(core, job, core_park_room(core, job), node->link);
}

/* A job that was to be parked, and runs since: an agent that died may have left it stopped after it had given
 * the order up. */
static void reconcile(struct core *core, struct core_entry *entry, const struct core_node *node)
{
    const struct job *job = entry->job;
    bool was_ordered = job_park(job)->phase == PARK_NONE && job_park(job)->number > 0;
    if (job->state == JOB_RUNNING && was_ordered && entry->changed_in <= core->durable_batch)
        core_send_park(core, job, 0, node->link);
    else
        act(core, entry);
}

/* --- results --- */

static void change(struct core *core, struct core_entry *entry, enum job_event_type type,
    const struct message_park_result *result)
{
    struct job_event event = { .type = type,
        .attempt = entry->job->attempt,
        .text = result->outcome == PARK_DONE ? NULL : result->text,
        .park_bytes = type == EVENT_PARKED ? result->bytes : 0 };
    core_change(core, entry, &event, NULL);
}

/* Its GPUs were needed, or its time was up: what happens to a job that is not parked. */
static void fall_back(struct core *core, struct core_entry *entry, uint32_t cause)
{
    if (cause == PARK_TIME_LIMIT) {
        core_stop_job(core, entry, core->options.admin_uid, END_TIME_LIMIT);
    } else if (cause == PARK_PREEMPTED) {
        struct job_event event = {
            .type = EVENT_PREEMPTED, .attempt = entry->job->attempt, .park_cause = PARK_PREEMPTED
        };
        event.text = xstrdup("other jobs need its GPUs, and it could not be parked");
        core_change(core, entry, &event, NULL);
        free(event.text);
    }
}

static void on_saved(struct core *core, struct core_entry *entry, const struct message_park_result *result)
{
    uint32_t cause = job_park(entry->job)->cause;
    change(core, entry, result->outcome == PARK_DONE ? EVENT_PARKED : EVENT_UNPARKED, result);
    if (result->outcome == PARK_REFUSED)
        fall_back(core, entry, cause);
}

static void on_restored(struct core *core, struct core_entry *entry, const struct message_park_result *result)
{
    change(core, entry, result->outcome == PARK_REFUSED ? EVENT_PARKED : EVENT_UNPARKED, result);
}

static void on_result(struct core *core, struct core_node *node, const void *message)
{
    const struct message_park_result *result = message;
    struct core_entry *entry = core_find_current(core, node, &result->id, result->token);
    if (entry == NULL || entry->job->state != JOB_RUNNING || job_park(entry->job)->number != result->number ||
        result->outcome < PARK_DONE || result->outcome > PARK_LOST)
        return;
    uint32_t phase = job_park(entry->job)->phase;
    if (phase == PARK_SAVING)
        on_saved(core, entry, result);
    else if (phase == PARK_RESTORING)
        on_restored(core, entry, result);
    else
        return;
    if (result->outcome == PARK_LOST)
        core_stop_job(core, entry, core->options.admin_uid, END_GPU_FAULT);
    core_node_changed(core, node); // its host memory is booked in another way now
}

/* --- returns at a time --- */

static void look_at_jobs(struct core *core)
{
    core->parks->next_ms = TIME_NEVER;
    core->parks->has_memory = false;
    for (const struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after) {
        const struct job_park *park = job_park(entry->job);
        core->parks->has_memory |= park->memory != 0;
        int64_t at_ms = core->boot_ms + park->return_ms - core->now_ms;
        if (park->phase == PARK_PARKED && park->return_ms != 0 && at_ms < core->parks->next_ms)
            core->parks->next_ms = at_ms;
    }
}

/* With the end of an attempt that was parked, its host memory is free. */
static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    bool is_over = job_state_is_active(news->before) && !job_state_is_active(entry->job->state);
    bool had_memory = core->parks->has_memory;
    if (news->event->type >= EVENT_PARK || (is_over && had_memory))
        look_at_jobs(core);
    for (size_t i = 0; is_over && had_memory && i < core->n_nodes; i++)
        if (core->nodes[i].is_up)
            core_node_changed(core, &core->nodes[i]);
}

static int64_t next_ms(const struct core *core)
{
    return core->parks->next_ms;
}

static void run(struct core *core)
{
    if (core->parks->next_ms > core->boot_ms)
        return;
    for (struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after) {
        const struct job_park *park = job_park(entry->job);
        if (entry->job->state != JOB_RUNNING || park->phase != PARK_PARKED || park->return_ms == 0 ||
            park->return_ms > core->now_ms)
            continue;
        struct job_event event = {
            .type = EVENT_UNPARK, .attempt = entry->job->attempt, .uid = core->options.admin_uid
        };
        core_change(core, entry, &event, NULL);
    }
    look_at_jobs(core);
}

static void init(struct core *core)
{
    core->parks = xcalloc(1, sizeof(*core->parks));
    core->parks->next_ms = TIME_NEVER;
}

static void clear(struct core *core)
{
    free(core->parks);
}

static const struct core_message messages[] = {
    { MESSAGE_PARK_RESULT, on_result },
    { 0, NULL },
};

const struct core_concern core_concern_park = {
    .name = "park",
    .init = init,
    .free = clear,
    .begin = look_at_jobs,
    .event = on_event,
    .act = act,
    .reconcile = reconcile,
    .messages = messages,
    .stepped = look_at_jobs,
    .next_ms = next_ms,
    .run = run,
};
