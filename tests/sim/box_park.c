/* SPDX-License-Identifier: MIT */
/*
 * What must be true of jobs that the scheduler parks by its own rule, from the events alone: each has its
 * GPUs again before it has been parked for PARK_BOUND times as long as it has run, unless something kept its
 * node or the controller from it; none that is parked is taken from its GPUs for others, or ends by anything
 * that it could only do while it runs; and one that the driver cannot continue ends with a sentence.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "box.h"
#include "job/park.h"

#define PARK_BOUND 4
#define BEFORE_MS  1000 // what disturbed those that were parked before it

void box_disturb(struct box *box, const struct place *place, int64_t for_ms)
{
    if (!box->are_plain)
        return;
    box->disturbances = xreallocarray(box->disturbances, box->n_disturbances + 1, sizeof(*box->disturbances));
    box->disturbances[box->n_disturbances++] = (struct box_disturbance){
        .from_ms = box->world.now_ms, .until_ms = box->world.now_ms + for_ms, .place = place
    };
}

static bool is_disturbed(const struct box *box, const char *node, int64_t from_ms, int64_t until_ms)
{
    for (size_t i = 0; i < box->n_disturbances; i++) {
        const struct box_disturbance *disturbance = &box->disturbances[i];
        bool is_there = disturbance->place == NULL || text_equal(disturbance->place->node.name, node);
        if (is_there && disturbance->from_ms <= until_ms && disturbance->until_ms >= from_ms)
            return true;
    }
    return false;
}

/* By the rule, and since then nothing else has happened to it; NULL: not so. */
static const struct job_event *find_park(const struct box *box, const struct job_event *now)
{
    size_t at = 0;
    while (&box->events[at].event != now)
        at++;
    while (at-- > 0) {
        const struct job_event *event = &box->events[at].event;
        if (event->type != EVENT_CLUSTER && event->job == now->job)
            return event->type == EVENT_PARKED && event->text == NULL ? event : NULL;
    }
    return NULL;
}

static void judge_return(struct box *box, const struct job *job, const struct job_event *event)
{
    const struct job_park *park = job_park(job);
    const struct job_event *parked = find_park(box, event);
    if (!park->is_owed || job_is_early(job) || parked == NULL ||
        is_disturbed(box, job->node, parked->boot_ms - BEFORE_MS, event->boot_ms))
        return;
    int64_t parked_ms = park->waited_ms + event->wall_ms - park->since_ms;
    if (parked_ms > PARK_BOUND * park->ran_ms)
        box_break(box, "it was parked for longer than the bound", job->id);
    box->tally.counts[TALLY_RULE_IN_TIME]++;
}

/* It stands still, without its GPUs. Its command may have exited just before. */
static void judge_end(struct box *box, const struct job *job, const struct job_event *event)
{
    static const enum job_end ends[] = { END_CANCELLED, END_NODE_LOST, END_REBOOT, END_UNKNOWN, END_GPU_FAULT,
        END_DEADLINE, END_EXIT };
    uint32_t phase = job_park(job)->phase;
    bool is_away = (phase == PARK_PARKED || phase == PARK_WAITING) && job_park(job)->is_owed &&
                   !job_park_is_unconfirmed(job);
    bool is_good = event->type != EVENT_PREEMPTED && event->type != EVENT_ENDED;
    for (size_t i = 0; event->type == EVENT_ENDED && i < sizeof(ends) / sizeof(ends[0]); i++)
        is_good |= event->end == ends[i];
    if (is_away && !is_good && box->was_open == NULL)
        box_break(box, "it was parked, and lost", job->id);
}

static void judge_sentence(struct box *box, const struct job *job, const struct job_event *event)
{
    bool is_lost = event->type == EVENT_ENDED && event->end == END_GPU_FAULT && job_park(job)->is_owed;
    if (is_lost && event->text == NULL)
        box_break(box, "it could not continue after it was parked, and ended without a sentence", job->id);
    box->tally.counts[TALLY_RULE_LOST] += is_lost;
}

void box_judge_park(struct box *box, const struct job *job, const struct job_event *event)
{
    if (event->type == EVENT_RESTORING)
        judge_return(box, job, event);
    judge_end(box, job, event);
    judge_sentence(box, job, event);
}
