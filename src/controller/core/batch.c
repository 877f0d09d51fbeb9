/* SPDX-License-Identifier: MIT */
/*
 * Batches and what waits for them. At the end of a turn the open batch is handed to the store unless one is
 * under way; everything that arrives meanwhile gathers in the next one (group commit). Replies, actions and
 * published events hang on the newest batch that holds changes and are let go when it is durable. When a
 * commit fails the program ends: memory is ahead of the disk, and only a new start knows what is true.
 */
#include "controller/core/batch.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

static void held_free(struct held *held)
{
    free(held->answer);
    job_event_clear(&held->event);
    free(held);
}

void core_batch_free(struct batch *batch)
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

struct batch *core_batch(struct core *core)
{
    if (core->open == NULL) {
        core->open = xcalloc(1, sizeof(*core->open));
        core->open->id = ++core->last_batch;
        core->open->changes = store_batch_new(core->open->id);
        core->open->last = &core->open->first;
    }
    return core->open;
}

/* Nobody is signalled by a word that was meant for an attempt before. */
static void send_signal(struct core *core, const struct held *held)
{
    const struct job *job = core_job(core, held->job);
    struct message_signal signal = held->signal;
    if (job == NULL || job->token != held->signal.token)
        return;
    for (signal.task = 0; signal.task < job_node_count(job); signal.task++) {
        const struct core_node *node = core_find_node(core, job_node_name(job, signal.task));
        if (node != NULL && node->is_up)
            core->effects.send(core->effects.arg, node->link, &message_signal_record, &signal);
    }
}

static void let_go(struct core *core, struct held *held)
{
    struct core_entry *entry = NULL;
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
    case HELD_SIGNAL: send_signal(core, held); break;
    case HELD_STOP:
        core->effects.send(core->effects.arg, held->link, &message_stop_record, &held->stop);
        break;
    case HELD_FORGET:
        core->effects.send(core->effects.arg, held->link, &message_forget_record, &held->forget);
        break;
    }
    held_free(held);
}

/* Hangs it on the newest batch with changes, or lets it go when all changes are durable. */
void core_hold_back(struct core *core, struct held held)
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

void core_batch_durable(struct core *core, struct batch *batch)
{
    while (batch->first != NULL) {
        struct held *held = batch->first;
        batch->first = held->next;
        let_go(core, held);
    }
    core_batch_free(batch);
}

/* The newest batch is the open one, else the one under way, else all is durable. */
void core_act_later(struct core *core, struct core_entry *entry)
{
    bool is_held = entry->changed_in == core->last_batch && core->durable_batch < core->last_batch;
    entry->changed_in = core->last_batch;
    if (!is_held)
        core_hold_back(core, (struct held){ .kind = HELD_ACT, .job = entry->job->id });
}

void core_reply(struct core *core, void *request, const struct core_answer *answer)
{
    struct core_answer *copy = xcalloc(1, sizeof(*copy));
    *copy = *answer;
    core_hold_back(core, (struct held){ .kind = HELD_REPLY, .request = request, .answer = copy });
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
    core_hold_back(core, (struct held){ .kind = HELD_FORGET, .link = link, .forget = *forget });
}

static void forget_in(struct batch *batch, const void *request)
{
    for (struct held *held = batch != NULL ? batch->first : NULL; held != NULL; held = held->next)
        if (held->request == request)
            held->request = NULL;
}

void core_forget_replies(struct core *core, const void *request)
{
    forget_in(core->open, request);
    forget_in(core->flying, request);
}
