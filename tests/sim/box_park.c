/* SPDX-License-Identifier: MIT */
/*
 * What must be true of jobs that the scheduler parks by its own rule, from the events alone: each has its
 * GPUs again before it has been parked for PARK_BOUND times as long as it has run, unless something kept its
 * node or the controller from it; none that is parked is taken from its GPUs for others, or ends by anything
 * that it could only do while it runs; and one that the driver cannot continue ends with a sentence. None is
 * asked soon after one with its command refused, where the setting forbids it, or from whose GPU enough are
 * parked, unless these may return to others. One that starts again because its GPUs are due to a parked job
 * is never parked by the rule after that, and does not start again for that reason.
 */
#include <string.h>

#include "base/memory.h"
#include "box.h"
#include "job/park.h"

#define PARK_BOUND 4
#define LAYERS     2      // parked from a GPU for others
#define PAUSE_MS   600000 // the first one, after a refusal
#define AUTO       "2"    // enum parking_mode
#define BEFORE_MS  1000   // what disturbed those that were parked before it

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

/* --- commands that refuse --- */

static void forget_refusal(struct box *box, uint64_t command_hash)
{
    for (size_t i = 0; i < box->n_refusing; i++)
        if (box->refusing[i].command_hash == command_hash)
            box->refusing[i--] = box->refusing[--box->n_refusing];
}

static void note_refusal(struct box *box, const struct job *job, int64_t until_ms)
{
    if (box->n_refusing == sizeof(box->refusing) / sizeof(box->refusing[0])) {
        box_break(box, "there are more commands that refuse than the judge remembers", job->id);
        return;
    }
    box->refusing[box->n_refusing].command_hash = core_command_hash(job);
    box->refusing[box->n_refusing++].until_ms = until_ms;
}

static void note_unparked(struct box *box, const struct job *job, const struct job_event *event)
{
    const struct job_park *park = job_park(job);
    if (job_is_early(job))
        return;
    if (event->text == NULL && park->phase == PARK_RESTORING)
        forget_refusal(box, core_command_hash(job));
    else if (event->text != NULL && park->phase == PARK_RESTORING)
        note_refusal(box, job, INT64_MAX); // it cannot return
    else if (event->text != NULL && park_cause_is_rule(park->cause))
        note_refusal(box, job, event->wall_ms + PAUSE_MS);
}

static void judge_refusal(struct box *box, const struct job *job, const struct job_event *event)
{
    for (size_t i = 0; i < box->n_refusing; i++)
        if (box->refusing[i].command_hash == core_command_hash(job) &&
            event->wall_ms < box->refusing[i].until_ms)
            box_break(box, "it is to be parked, soon after one with its command refused", job->id);
}

/* --- jobs that start again --- */

static bool is_reclaim(const struct job_event *event)
{
    return event->type == EVENT_PREEMPTED && event->park_cause == PARK_DUE;
}

static bool was_reclaimed(const struct box *box, const struct job_event *now)
{
    for (size_t i = 0; &box->events[i].event != now; i++)
        if (box->events[i].event.job == now->job && is_reclaim(&box->events[i].event))
            return true;
    return false;
}

/* Its GPUs are due to a parked job. If something disturbs its node, that may happen again. */
static void judge_reclaim(struct box *box, const struct job *job, const struct job_event *event)
{
    if (was_reclaimed(box, event) && !is_disturbed(box, job->node, 0, event->boot_ms))
        box_break(box, "it starts again for a parked job a second time", job->id);
    box->tally.counts[TALLY_RECLAIMS]++;
}

/* --- which jobs --- */

static bool has_left(const struct job *job, const char *uuid)
{
    const struct gpu_grant *grants = job->grants.items;
    bool is_away = job_is_parked(job) && job_is_owed(job) && !job_is_early(job);
    for (size_t i = 0; is_away && i < job->grants.count; i++)
        if (text_equal(grants[i].uuid, uuid))
            return true;
    return false;
}

/* GPUs of its node that parked jobs have left. */
static size_t count_left(struct job *const *jobs, size_t highest, const struct job *job)
{
    size_t count = 0;
    for (size_t i = 1; i <= highest; i++) {
        bool is_away = jobs[i] != NULL && jobs[i] != job && job_is_parked(jobs[i]) && job_is_owed(jobs[i]) &&
                       !job_is_early(jobs[i]);
        count += is_away && text_equal(jobs[i]->node, job->node) ? jobs[i]->grants.count : 0;
    }
    return count;
}

static void judge_park(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event)
{
    const struct gpu_grant *grants = job->grants.items;
    if (box->settings == NULL || strstr(box->settings, "\nparking=" AUTO) == NULL)
        box_break(box, "the scheduler parks it, and may not", job->id);
    judge_refusal(box, job, event);
    if (was_reclaimed(box, event) && box->was_open == NULL)
        box_break(box, "it is to be parked, and has started again for a parked job", job->id);
    for (size_t k = 0; event->park_cause == PARK_SHORTER && k < job->grants.count; k++) {
        size_t layers = 0;
        for (size_t i = 1; i <= highest; i++)
            layers += jobs[i] != NULL && jobs[i] != job && has_left(jobs[i], grants[k].uuid);
        bool is_full = count_left(jobs, highest, job) + job->grants.count > (size_t)LAYERS * NODE_GPUS;
        if (layers >= LAYERS && is_full)
            box_break(box, "it is to be parked for another, from a GPU from which enough are", job->id);
    }
}

void box_judge_park(struct box *box, struct job *const *jobs, size_t highest, const struct job_event *event)
{
    if (event->type == EVENT_CLUSTER) {
        const struct cluster_change *change = event->change.items;
        if (change->kind == CHANGE_NODE_PARKING && change->parks)
            box->n_refusing = 0;
        return;
    }
    const struct job *job = jobs[box_index(event->job)];
    if (event->type == EVENT_PARK && park_cause_is_rule(event->park_cause))
        judge_park(box, jobs, highest, job, event);
    if (is_reclaim(event))
        judge_reclaim(box, job, event);
    if (event->type == EVENT_RESTORING)
        judge_return(box, job, event);
    if (event->type == EVENT_UNPARKED)
        note_unparked(box, job, event);
    judge_end(box, job, event);
    judge_sentence(box, job, event);
}
