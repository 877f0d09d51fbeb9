/* SPDX-License-Identifier: MIT */
/* Requests that are answered when a job reaches a state, or when an element of an array has become a job of
 * its own. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/behind.h"

struct waiter {
    void *request;
    uint64_t job;
    uint32_t states;
    bool is_outcome;     // not before its attempt has begun, or is over, although it is shown as queued
    bool is_for_element; // `job` is an array, and this element is not a separate job yet
    uint32_t element;
    uint32_t idle_level; // a change from this level ends the wait too; IDLE_LEVELS: none does
    struct waiter *next;
};

void core_wait_idle(struct core *core, uint64_t job, uint32_t states, uint32_t idle_level, void *request)
{
    const struct core_entry *entry = core_find(core, job);
    if (entry == NULL) {
        struct core_answer answer = { .job = job };
        answer.code = error_set(&answer.err, -ENOENT, "there is no job %" PRIu64, job);
        core_reply(core, request, &answer);
        return;
    }
    bool is_other_level = idle_level != IDLE_LEVELS && idle_level != entry->job->idle_level;
    if (is_other_level || (states & (1U << job_shown_state(entry->job))) != 0) {
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

void core_wait(struct core *core, uint64_t job, uint32_t states, void *request)
{
    core_wait_idle(core, job, states, IDLE_LEVELS, request);
}

void core_wait_outcome(struct core *core, uint64_t job, void *request)
{
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){ .request = request,
        .job = job,
        .states = ~(1U << JOB_STARTING),
        .idle_level = IDLE_LEVELS,
        .is_outcome = true,
        .next = core->waiters };
    core->waiters = waiter;
}

/* Clients that wait for this element of the array now wait for this job. */
static void pass_on(struct core *core, uint64_t array, uint32_t index, uint64_t job)
{
    for (struct waiter *waiter = core->waiters; waiter != NULL; waiter = waiter->next)
        if (waiter->is_for_element && waiter->job == array && waiter->element == index) {
            waiter->job = job;
            waiter->is_for_element = false;
        }
}

static void answer(struct core *core, const struct job *job)
{
    struct waiter **link = &core->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        uint32_t states = waiter->is_for_element ? 1U << JOB_DONE : waiter->states;
        bool is_other_level = waiter->idle_level != IDLE_LEVELS && waiter->idle_level != job->idle_level;
        enum job_state state = waiter->is_outcome ? job->state : job_shown_state(job);
        if (waiter->job != job->id || ((states & (1U << state)) == 0 && !is_other_level)) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        core_reply_ok(core, waiter->request, job->id);
        free(waiter);
    }
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job_event *event = news->event;
    if (event->type == EVENT_SPLIT)
        pass_on(core, entry->job->id, event->array_index, event->element);
    answer(core, entry->job);
}

/* An element on a node that is disconnected may begin, or be given back, at any time. */
static void on_down(struct core *core, struct core_node *node)
{
    struct waiter **link = &core->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        const struct core_entry *entry = waiter->is_outcome ? core_find(core, waiter->job) : NULL;
        if (entry == NULL || !text_equal(entry->job->node, node->name)) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        core_reply_ok(core, waiter->request, waiter->job);
        free(waiter);
    }
}

static void forget(struct core *core, const void *request)
{
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

static void clear(struct core *core)
{
    while (core->waiters != NULL) {
        struct waiter *next = core->waiters->next;
        free(core->waiters);
        core->waiters = next;
    }
}

const struct core_concern core_concern_waiters = {
    .name = "waiters",
    .free = clear,
    .events = CORE_ON_ALL,
    .event = on_event,
    .down = on_down,
    .forget = forget,
};
