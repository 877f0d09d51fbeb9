/* SPDX-License-Identifier: MIT */
/* The jobs, as the durable events tell of them: what the store would read. */
#include <stdio.h>

#include "base/memory.h"
#include "box.h"
#include "controller/core/describe.h"

#define JOBS_MAX (12 * ASKS_MAX) // with elements of arrays, and with ids that a restore leaves out

/* What a new job was asked to run: its own, or its array's. */
static const struct job_spec *spec_of(const struct box *box, const struct change *change)
{
    const struct job_event *event = &change->event;
    if (change->spec != NULL)
        return change->spec;
    uint64_t owner = event->array_job != 0 ? event->array_job : event->job;
    for (size_t i = 0; event->type == EVENT_SUBMITTED && i < box->n_events; i++)
        if (box->events[i].spec != NULL && box->events[i].event.job == owner)
            return box->events[i].spec;
    return NULL;
}

struct job **box_fold(struct box *box, box_look look, size_t *ret_count)
{
    struct job **jobs = xcalloc(box->n_events + JOBS_MAX, sizeof(struct job *));
    size_t highest = 0;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct change *change = &box->events[i];
        struct error err = { 0 };
        uint64_t id = change->event.job;
        size_t at = box_index(id);
        if (change->event.type == EVENT_CLUSTER && look != NULL)
            look(box, jobs, highest, &change->event);
        if (change->event.type == EVENT_CLUSTER)
            continue;
        const struct job_spec *spec = spec_of(box, change);
        if (spec != NULL && jobs[at] != NULL)
            box_break(box, "an id was given out twice", id);
        if (spec != NULL)
            jobs[at] = job_new(id, spec);
        if (jobs[at] != NULL && look != NULL)
            look(box, jobs, highest, &change->event);
        if (jobs[at] == NULL || job_apply(jobs[at], &change->event, &err) < 0 ||
            job_invariant(jobs[at], &err) < 0) {
            box_break(box, "the events do not fold", id);
            (void)fprintf(stderr, "%s\n", err.message);
            break;
        }
        if (jobs[at]->idle_level != IDLE_NONE && jobs[at]->ask->idle_ok)
            box_break(box, "it was told of idleness that it may have", id);
        highest = at > highest ? at : highest;
    }
    *ret_count = highest + 1;
    return jobs;
}

struct core_fact box_fact(const struct box *box, uint64_t id)
{
    struct core_fact fact = { .job = id };
    struct job *job = NULL;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        struct error err = { 0 };
        if (event->type == EVENT_CLUSTER || event->job != id)
            continue;
        if (job == NULL)
            job = job_new(id, spec_of(box, &box->events[i]));
        (void)job_apply(job, event, &err); // what does not fold is found in the end
    }
    if (job != NULL) {
        fact.is_ok = core_is_ok(job);
        fact.began_ms = core_began_ms(job);
    }
    job_free(job);
    return fact;
}
