/* SPDX-License-Identifier: MIT */
/*
 * Batches and the effects deferred until they are durable. At the end of a turn the open batch is handed to
 * the store unless one is in flight; everything that arrives meanwhile is collected in the next one (group
 * commit). A batch stays open for a moment if nobody waits for its changes (core/change.c). Replies, actions
 * and published events are deferred until the newest batch with changes is durable. If a commit fails, the
 * program exits: memory is ahead of the disk, and only a new start can find out what was stored.
 */
#include "controller/core/batch.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

static void deferred_free(struct deferred *deferred)
{
    free(deferred->answer);
    job_event_clear(&deferred->event);
    free(deferred);
}

void core_batch_free(struct batch *batch)
{
    if (batch == NULL)
        return;
    while (batch->first != NULL) {
        struct deferred *next = batch->first->next;
        deferred_free(batch->first);
        batch->first = next;
    }
    store_batch_free(batch->changes);
    free(batch);
}

struct batch *core_batch(struct core *core)
{
    if (core->open == NULL) {
        core->open = xcalloc(1, sizeof(*core->open));
        core->open->id = ++core->last_batch;
        core->open->changes = store_batch_new(core->open->id);
        core->open->last = &core->open->first;
        core->open->due_ms = TIME_NEVER;
    }
    return core->open;
}

void core_batch_within(const struct core *core, struct batch *batch, int64_t patience_ms)
{
    int64_t due_ms = core->boot_ms + patience_ms;
    if (due_ms < batch->due_ms)
        batch->due_ms = due_ms;
}

/* A signal for an earlier attempt must not reach the current one. */
static void send_signal(struct core *core, const struct deferred *deferred)
{
    const struct job *job = core_job(core, deferred->job);
    struct message_signal signal = deferred->signal;
    if (job == NULL || job->token != deferred->signal.token)
        return;
    for (signal.id.rank = 0; signal.id.rank < job_node_count(job); signal.id.rank++) {
        const struct core_node *node = core_find_node(core, job_node_name(job, signal.id.rank));
        if (node != NULL && node->is_up)
            core->effects.send(core->effects.arg, node->link, &message_signal_record, &signal);
    }
}

static void release(struct core *core, struct deferred *deferred)
{
    struct core_entry *entry = NULL;
    switch (deferred->kind) {
    case DEFERRED_REPLY:
        if (deferred->request != NULL)
            core->effects.reply(core->effects.arg, deferred->request, deferred->answer);
        break;
    case DEFERRED_ACT:
        entry = core_find(core, deferred->job);
        if (entry != NULL)
            core_act(core, entry);
        break;
    case DEFERRED_PUBLISH:
        core->last_durable_event = deferred->event.seq;
        core->effects.publish(core->effects.arg, &deferred->event, core_job(core, deferred->event.job));
        break;
    case DEFERRED_SIGNAL: send_signal(core, deferred); break;
    case DEFERRED_STOP:
        core->effects.send(core->effects.arg, deferred->link, &message_stop_record, &deferred->stop);
        break;
    case DEFERRED_RELEASE:
        deferred->release.event = core->last_durable_event;
        core->effects.send(
            core->effects.arg, deferred->link, &message_release_attempt_record, &deferred->release);
        break;
    }
    deferred_free(deferred);
}

/* Attaches it to the newest batch with changes, or executes it if all changes are durable. */
void core_defer(struct core *core, struct deferred deferred)
{
    struct deferred *copy = xcalloc(1, sizeof(*copy));
    *copy = deferred;
    struct batch *batch = core->open != NULL ? core->open : core->flying;
    if (batch == NULL) {
        release(core, copy);
        return;
    }
    if (deferred.kind == DEFERRED_REPLY)
        core_batch_within(core, batch, 0);
    *batch->last = copy;
    batch->last = &copy->next;
}

void core_batch_durable(struct core *core, struct batch *batch)
{
    while (batch->first != NULL) {
        struct deferred *deferred = batch->first;
        batch->first = deferred->next;
        release(core, deferred);
    }
    core_batch_free(batch);
}

/* The newest batch is the open one, else the one in progress; if there is neither, all changes are
 * durable. */
void core_act_later(struct core *core, struct core_entry *entry)
{
    bool is_held = entry->changed_in == core->last_batch && core->durable_batch < core->last_batch;
    entry->changed_in = core->last_batch;
    if (!is_held)
        core_defer(core, (struct deferred){ .kind = DEFERRED_ACT, .job = entry->job->id });
}

void core_reply(struct core *core, void *request, const struct core_answer *answer)
{
    struct core_answer *copy = xcalloc(1, sizeof(*copy));
    *copy = *answer;
    core_defer(core, (struct deferred){ .kind = DEFERRED_REPLY, .request = request, .answer = copy });
}

void core_reply_ok(struct core *core, void *request, uint64_t job)
{
    core_reply(core, request, &(struct core_answer){ .job = job });
}

void core_barrier(struct core *core, void *request)
{
    core_reply_ok(core, request, 0);
}

void core_release_attempt(struct core *core, uint32_t link, const struct message_release_attempt *release)
{
    core_defer(core, (struct deferred){ .kind = DEFERRED_RELEASE, .link = link, .release = *release });
}

static void forget_in(struct batch *batch, const void *request)
{
    for (struct deferred *deferred = batch != NULL ? batch->first : NULL; deferred != NULL;
         deferred = deferred->next)
        if (deferred->request == request)
            deferred->request = NULL;
}

void core_forget_replies(struct core *core, const void *request)
{
    forget_in(core->open, request);
    forget_in(core->flying, request);
}
