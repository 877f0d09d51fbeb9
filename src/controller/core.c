/* SPDX-License-Identifier: MIT */
/*
 * Changes and batches. A change is applied in memory at once and joins the open batch. At the end of a turn
 * the open batch is handed to the store unless one is under way; everything that arrives meanwhile gathers in
 * the next one (group commit). Replies, actions and published events hang on the newest batch that holds
 * changes and are let go when it is durable. When a commit fails the program ends: memory is ahead of the
 * disk, and only a new start knows what is true.
 */
#include "controller/core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core_private.h"

#define LAZY_COMMIT_MS 5 // how long changes that nobody waits for may gather

struct core *core_new(const struct core_options *options, const struct core_effects *effects)
{
    struct core *core = xcalloc(1, sizeof(*core));
    core->options = *options;
    core->effects = *effects;
    queue_init(&core->queue);
    return core;
}

static void held_free(struct held *held)
{
    free(held->answer);
    job_event_clear(&held->event);
    free(held);
}

static void batch_free(struct batch *batch)
{
    if (batch == NULL)
        return;
    while (batch->first != NULL) {
        struct held *next = batch->first->next;
        held_free(batch->first);
        batch->first = next;
    }
    store_batch_free(batch->changes);
    free(batch);
}

void core_free(struct core *core)
{
    if (core == NULL)
        return;
    batch_free(core->open);
    batch_free(core->flying);
    while (core->waiters != NULL) {
        struct waiter *next = core->waiters->next;
        free(core->waiters);
        core->waiters = next;
    }
    for (size_t i = 0; i < core->n_nodes; i++) {
        free(core->nodes[i].name);
        record_clear(&message_hello_record, &core->nodes[i].hello);
    }
    free(core->nodes);
    queue_clear(&core->queue);
    cluster_clear(&core->cluster);
    key_table_clear(&core->keys);
    job_table_clear(&core->jobs);
    free(core);
}

/* --- what waits for durability --- */

static struct batch *open_batch(struct core *core)
{
    if (core->open == NULL) {
        core->open = xcalloc(1, sizeof(*core->open));
        core->open->id = ++core->last_batch;
        core->open->changes = store_batch_new(core->open->id);
        core->open->last = &core->open->first;
    }
    return core->open;
}

static void let_go(struct core *core, struct held *held)
{
    struct core_job *entry = NULL;
    switch (held->kind) {
    case HELD_REPLY:
        if (held->request != NULL)
            core->effects.reply(core->effects.arg, held->request, held->answer);
        break;
    case HELD_ACT:
        entry = core_find(core, held->job);
        if (entry != NULL)
            core_act(core, entry);
        break;
    case HELD_PUBLISH:
        core->last_durable_event = held->event.seq;
        core->effects.publish(core->effects.arg, &held->event, core_job(core, held->event.job));
        break;
    case HELD_FORGET:
        core->effects.send(core->effects.arg, held->link, &message_forget_record, &held->forget);
        break;
    }
    held_free(held);
}

/* Hangs it on the newest batch with changes, or lets it go when all changes are durable. */
static void hold(struct core *core, struct held held)
{
    struct held *copy = xcalloc(1, sizeof(*copy));
    *copy = held;
    struct batch *batch = core->open != NULL ? core->open : core->flying;
    if (batch == NULL) {
        let_go(core, copy);
        return;
    }
    batch->is_urgent |= held.kind == HELD_REPLY;
    *batch->last = copy;
    batch->last = &copy->next;
}

void core_reply(struct core *core, void *request, const struct core_answer *answer)
{
    struct core_answer *copy = xcalloc(1, sizeof(*copy));
    *copy = *answer;
    hold(core, (struct held){ .kind = HELD_REPLY, .request = request, .answer = copy });
}

void core_reply_ok(struct core *core, void *request, uint64_t job)
{
    core_reply(core, request, &(struct core_answer){ .job = job });
}

void core_barrier(struct core *core, void *request)
{
    core_reply_ok(core, request, 0);
}

void core_forget_attempt(struct core *core, uint32_t link, const struct message_forget *forget)
{
    hold(core, (struct held){ .kind = HELD_FORGET, .link = link, .forget = *forget });
}

static void forget_in(struct batch *batch, const void *request)
{
    for (struct held *held = batch != NULL ? batch->first : NULL; held != NULL; held = held->next)
        if (held->request == request)
            held->request = NULL;
}

void core_forget(struct core *core, void *request)
{
    forget_in(core->open, request);
    forget_in(core->flying, request);
    struct waiter **link = &core->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        if (waiter->request != request) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        free(waiter);
    }
}

/* --- changes --- */

static void answer_waiters(struct core *core, const struct job *job)
{
    struct waiter **link = &core->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        if (waiter->job != job->id || (waiter->states & (1U << job->state)) == 0) {
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
    *(core->done_last != NULL ? &core->done_last->done_after : &core->done_first) = entry;
    core->done_last = entry;
    core->n_done++;
}

/* Forgets the jobs that ended first, beyond the limit; the store still has them. */
static void trim_done(struct core *core)
{
    while (
        core->n_done > core->options.recent_done_max && core->done_first->changed_in <= core->durable_batch) {
        struct core_job *entry = core->done_first;
        core->done_first = entry->done_after;
        if (core->done_first == NULL)
            core->done_last = NULL;
        job_table_remove(&core->jobs, entry);
        core->n_done--;
    }
}

void core_book(struct core *core, struct core_job *entry)
{
    cluster_book(&core->cluster, entry->job->node, &entry->job->grants);
    entry->active_after = core->active_first;
    if (core->active_first != NULL)
        core->active_first->active_before = entry;
    core->active_first = entry;
}

void core_release(struct core *core, struct core_job *entry)
{
    cluster_release(&core->cluster, entry->job->node, &entry->job->grants);
    *(entry->active_before != NULL ? &entry->active_before->active_after : &core->active_first) =
        entry->active_after;
    if (entry->active_after != NULL)
        entry->active_after->active_before = entry->active_before;
    entry->active_before = entry->active_after = NULL;
    core->is_dirty = true;
}

/* job_apply with the ledger kept in step: what an event takes away is given back before the job forgets what
 * it was. */
static void apply(struct core *core, struct core_job *entry, const struct job_event *event)
{
    struct job *job = entry->job;
    enum job_state next;
    struct error err = { 0 };
    bool was_active = job_state_is_active(job->state);
    bool is_known = job_transition(job->state, (enum job_event_type)event->type, &next);
    if (is_known && was_active && !job_state_is_active(next))
        core_release(core, entry);
    if (job_apply(job, event, &err) < 0) {
        (void)fprintf(stderr, "mgpud: impossible change: %s\n", err.message);
        abort();
    }
    if (!was_active && job_state_is_active(job->state))
        core_book(core, entry);
}

void core_change(struct core *core, struct core_job *entry, struct job_event *event, int64_t boot_ms,
    int64_t wall_ms, const struct job_spec *spec)
{
    struct job *job = entry->job;
    event->job = job->id;
    event->wall_ms = wall_ms;
    event->boot_ms = boot_ms;
    event->seq = ++core->last_event;
    apply(core, entry, event);
    if (job->state != JOB_QUEUED)
        queue_remove(&core->queue, &entry->entry);
    if (job->state == JOB_DONE) {
        core->n_undone--;
        core_note_done(core, entry);
        core_drop_spec(core, entry);
    }
    struct batch *batch = open_batch(core);
    /* A start is followed by nothing that waits for it, and often by its end: both can be one commit. */
    batch->is_urgent |= event->type != EVENT_STARTED;
    entry->changed_in = batch->id;
    store_batch_add(batch->changes, event, job, spec);
    struct held publish = { .kind = HELD_PUBLISH };
    record_copy(&job_event_record, &publish.event, event);
    hold(core, publish);
    hold(core, (struct held){ .kind = HELD_ACT, .job = job->id });
    answer_waiters(core, job);
}

void core_arm(struct core *core, int64_t boot_ms)
{
    if (core->armed_ms != 0 && core->armed_ms <= boot_ms)
        return;
    core->armed_ms = boot_ms;
    core->effects.arm(core->effects.arg, boot_ms);
}

void core_wait(struct core *core, uint64_t job, uint32_t states, void *request)
{
    const struct core_job *entry = core_find(core, job);
    if (entry == NULL) {
        struct core_answer answer = { .job = job };
        answer.code = error_set(&answer.err, -ENOENT, "there is no job %" PRIu64, job);
        core_reply(core, request, &answer);
        return;
    }
    if ((states & (1U << entry->job->state)) != 0) {
        core_reply_ok(core, request, job);
        return;
    }
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){ .request = request, .job = job, .states = states, .next = core->waiters };
    core->waiters = waiter;
}

void core_on_durable(struct core *core, uint64_t id)
{
    struct batch *batch = core->flying;
    if (batch == NULL || batch->id != id)
        return;
    core->flying = NULL;
    core->durable_batch = id;
    while (batch->first != NULL) {
        struct held *held = batch->first;
        batch->first = held->next;
        let_go(core, held);
    }
    batch_free(batch);
    trim_done(core);
}

void core_turn(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    if (core->is_dirty)
        core_schedule(core, boot_ms, wall_ms);
    if (core->flying != NULL || core->open == NULL)
        return;
    if (!core->open->is_urgent) {
        core_arm(core, boot_ms + LAZY_COMMIT_MS);
        return;
    }
    core->flying = take_ptr(core->open);
    core->effects.commit(core->effects.arg, take_ptr(core->flying->changes));
}
