/* SPDX-License-Identifier: MIT */
/* What must be true in the end. The fold of the durable events is the only witness besides the nodes
 * themselves. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "box.h"
#include "box_journal.h"
#include "controller/core/state.h"

/* What a new job was asked to run: its own, or its array's. */
static const struct job_spec *spec_of(const struct box *box, const struct job_event *event)
{
    uint64_t owner = event->array_job != 0 ? event->array_job : event->job;
    for (size_t i = 0; event->type == EVENT_SUBMITTED && i < box->n_events; i++)
        if (box->events[i].spec != NULL && box->events[i].event.job == owner)
            return box->events[i].spec;
    return NULL;
}

/* The time limit of a parked job stands still. */
static void judge_parked(struct box *box, const struct job *job, const struct job_event *event)
{
    bool is_limit = (event->type == EVENT_PARK && event->park_cause == PARK_TIME_LIMIT) ||
                    (event->type == EVENT_STOP && event->reason == END_TIME_LIMIT);
    if (is_limit && job_is_parked(job))
        box_break(box, "its time limit passed while it was parked", job->id);
}

/* What it waits for: its time, its nodes, and other jobs. */
static void judge_start(
    struct box *box, struct job **jobs, const struct job *job, const struct job_event *event)
{
    uint64_t after = job->ask->after != NULL ? strtoull(job->ask->after, NULL, 10) : 0;
    if (event->wall_ms < job->ask->begin_ms)
        box_break(box, "it began before its time", job->id);
    if (job->ask->deadline_ms != 0 && event->wall_ms > job->ask->deadline_ms && job->attempt == 0)
        box_break(box, "it began after its deadline", job->id);
    if (after != 0 && jobs[after] != NULL && jobs[after]->state != JOB_DONE)
        box_break(box, "it began before the job that it waits for had ended", job->id);
    for (uint64_t i = 1; text_equal(job->name, BOX_SINGLETON) && i < job->id; i++)
        if (jobs[i] != NULL && text_equal(jobs[i]->name, BOX_SINGLETON) && jobs[i]->state != JOB_DONE)
            box_break(box, "it began beside another of its name", job->id);
}

static void judge_deadline(struct box *box, const struct job *job, const struct job_event *event)
{
    if (event->type != EVENT_STOP || event->reason != END_DEADLINE)
        return;
    if (job->ask->deadline_ms == 0 || event->wall_ms < job->ask->deadline_ms)
        box_break(box, "it was ended for a deadline that had not come", job->id);
    box->tally.counts[TALLY_DEADLINES]++;
}

struct job **box_fold(struct box *box, size_t *ret_count)
{
    struct job **jobs = xcalloc(box->n_events + 2, sizeof(struct job *));
    size_t highest = 0;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct change *change = &box->events[i];
        struct error err = { 0 };
        uint64_t id = change->event.job;
        if (change->event.type == EVENT_CLUSTER)
            continue;
        const struct job_spec *spec = spec_of(box, &change->event);
        if (spec != NULL && jobs[id] != NULL)
            box_break(box, "an id was given out twice", id);
        if (spec != NULL)
            jobs[id] = job_new(id, spec);
        if (jobs[id] != NULL)
            judge_parked(box, jobs[id], &change->event);
        if (jobs[id] != NULL && change->event.type == EVENT_ALLOCATED)
            judge_start(box, jobs, jobs[id], &change->event);
        if (jobs[id] != NULL)
            judge_deadline(box, jobs[id], &change->event);
        if (jobs[id] == NULL || job_apply(jobs[id], &change->event, &err) < 0 ||
            job_invariant(jobs[id], &err) < 0) {
            box_break(box, "the events do not fold", id);
            (void)fprintf(stderr, "%s\n", err.message);
            break;
        }
        if (jobs[id]->idle_level != IDLE_NONE && jobs[id]->ask->idle_ok)
            box_break(box, "it was told of idleness that it may have", id);
        highest = id > highest ? id : highest;
    }
    *ret_count = highest + 1;
    return jobs;
}

static bool was_cancelled(const struct box *box, const struct job *job)
{
    uint64_t asked = job->array_job != 0 ? job->array_job : job->id;
    for (size_t i = 0; i < box->n_asks; i++)
        if (box->asks[i].job == asked)
            return box->asks[i].is_cancelled;
    return false;
}

/* Of what went down with a node, or with its spool, nobody knows whether it ever ran. */
static bool went_down(const struct box *box, const struct job *job)
{
    return job->end == END_REBOOT || job->end == END_NODE_LOST ||
           (job->end == END_UNKNOWN && box->tally.counts[TALLY_WIPES] > 0);
}

static void judge_job(struct box *box, const struct job *job)
{
    uint32_t latest = 0, executions = box_executed_attempts(box, job->id, &latest);
    bool is_cancelled = was_cancelled(box, job);
    if (job->state != JOB_DONE)
        box_break(box, "an acknowledged job did not end", job->id);
    if (executions > 1 + job->preemptions)
        box_break(box, "it ran twice", job->id);
    if (!is_cancelled && job->end == END_CANCELLED)
        box_break(box, "it was cancelled without a request", job->id);
    if (job->end == END_TIME_LIMIT && job->ask->time_limit_ms == 0)
        box_break(box, "it was ended for a time limit that it did not have", job->id);
    if (job->end == END_IDLE_TIMEOUT && job->ask->idle_timeout_ms == 0)
        box_break(box, "it was ended for an idleness that is nobody's business", job->id);
    if (job_is_array(job))
        return;
    if (job->end == END_EXIT && !box_is_true_exit(box, job->id, latest, job->exit_code))
        box_break(box, "its exit code is not the true one", job->id);
    if (job->started_ms == 0 && executions > job->preemptions && !went_down(box, job))
        box_break(box, "it ran, but nobody knows", job->id);
    if (job_is_wide(job) && executions > 0)
        box->tally.counts[TALLY_WIDE_RUNS]++;
    bool is_failure = job->end == END_EXIT && job->exit_code != 0;
    bool may_tell_time = !box->has_copies; // a word that comes again is later than it was
    if (job_is_wide(job) && is_failure && !is_cancelled && may_tell_time &&
        !box_has_own_failure(box, job->id, latest))
        box_break(box, "it ended by a failure that had its cause in another rank's end", job->id);
    if (!is_cancelled && latest == 0 && job->end != END_START_FAILED && job->end != END_DEADLINE &&
        !went_down(box, job))
        box_break(box, "it never ran", job->id);
}

/* Each index of an array that nobody cancelled became one job. */
static void judge_array(struct box *box, struct job **jobs, size_t count, const struct job *array)
{
    unsigned elements = 0;
    for (size_t i = 0; i < count; i++)
        elements += jobs[i] != NULL && jobs[i]->array_job == array->id;
    bool may_lack = was_cancelled(box, array) || array->end == END_DEADLINE;
    if (elements > 5 || (elements < 5 && !may_lack))
        box_break(box, "its elements are not those that were asked for", array->id);
}

static bool is_told_of(const struct job_event *event, const char *uuid)
{
    const struct cluster_change *change = event->change.items;
    return event->type == EVENT_CLUSTER && event->change.count == 1 && text_equal(change->uuid, uuid);
}

/* From the event that drains a GPU to the one that puts it back, nothing is allocated there. */
static void judge_gpu(struct box *box, const char *uuid)
{
    bool is_drained = false;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct gpu_grant *grants = event->gpus.items;
        if (is_told_of(event, uuid)) {
            uint32_t kind = ((const struct cluster_change *)event->change.items)->kind;
            is_drained = kind == CHANGE_GPU_DRAIN ||
                         (is_drained && kind != CHANGE_GPU_RETURN && kind != CHANGE_GPU_RESUME);
            box->tally.counts[TALLY_GPU_RETURNS] += kind == CHANGE_GPU_RETURN;
            box->tally.counts[TALLY_GPU_DRAINS] += kind == CHANGE_GPU_DRAIN;
        }
        bool is_given = event->type == EVENT_ALLOCATED || event->type == EVENT_RESTORING;
        for (size_t k = 0; is_given && k < event->gpus.count; k++)
            if (is_drained && text_equal(grants[k].uuid, uuid))
                box_break(box, "it got a GPU that was drained", event->job);
    }
}

static bool is_on(const struct job_event *event, const char *name)
{
    const struct job_node *nodes = event->nodes.items;
    for (size_t i = 0; i < event->nodes.count; i++)
        if (text_equal(nodes[i].name, name))
            return true;
    return event->nodes.count == 0 && text_equal(event->node, name);
}

/* From its drain or fence until it is resumed, nothing is allocated on a node. */
static void judge_drain(struct box *box, const char *name)
{
    bool is_drained = false;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct cluster_change *change = event->change.items;
        if (event->type == EVENT_CLUSTER && change->uuid == NULL && text_equal(change->node, name))
            is_drained = change->kind == CHANGE_NODE_DRAIN || change->kind == CHANGE_NODE_FENCE ||
                         (is_drained && change->kind != CHANGE_NODE_RESUME);
        if (event->type == EVENT_ALLOCATED && is_drained && is_on(event, name))
            box_break(box, "it got a node that was drained", event->job);
    }
}

static bool is_of(const struct cluster_change *reservation, const struct job_event *event)
{
    const struct cluster_device *devices = reservation->devices.items;
    const struct gpu_grant *grants = event->gpus.items;
    for (size_t i = 0; i < reservation->devices.count; i++)
        for (size_t k = 0; k < event->gpus.count; k++)
            if (text_equal(devices[i].uuid, grants[k].uuid))
                return true;
    return false;
}

/* The event at `at` reserves GPUs for somebody else: no client gets them in that time. */
static void judge_reservation(struct box *box, size_t at)
{
    const struct cluster_change *reservation = box->events[at].event.change.items;
    for (size_t i = at + 1; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct cluster_change *change = event->change.items;
        bool is_change = event->type == EVENT_CLUSTER && change->reservation == reservation->reservation;
        if (is_change && change->kind == CHANGE_UNRESERVE)
            return;
        bool is_given = event->type == EVENT_ALLOCATED || event->type == EVENT_RESTORING;
        bool is_then = event->wall_ms >= reservation->from_ms && event->wall_ms < reservation->until_ms;
        if (is_given && is_then && is_of(reservation, event))
            box_break(box, "it got a GPU that was reserved for another user", event->job);
    }
}

static void judge_reservations(struct box *box)
{
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct cluster_change *change = event->change.items;
        bool is_reserve = event->type == EVENT_CLUSTER && change->kind == CHANGE_RESERVE;
        if (is_reserve && !text_equal(change->users, BOX_CLIENT))
            judge_reservation(box, i);
    }
}

static void judge_nodes(struct box *box)
{
    for (size_t i = 0; i < box->n_places; i++) {
        const struct node *node = &box->places[i].node;
        judge_drain(box, node->name);
        for (uint32_t index = 0; index < NODE_GPUS; index++) {
            char uuid[16];
            node_gpu_uuid(node, index, uuid);
            judge_gpu(box, uuid);
        }
        if (!node->is_off && node_left_over(node) > 0)
            box_break(box, "the spool is not empty", 0);
        if (box->broken == NULL && node->broken != NULL)
            (void)snprintf(
                box->detail, sizeof(box->detail), "%s: %s", node->name, box->broken = node->broken);
    }
}

/* Whether it got the GPUs that it had before. */
static bool is_move(const struct box *box, size_t at)
{
    const struct job_event *event = &box->events[at].event;
    for (size_t i = at; i-- > 0;) {
        const struct job_event *before = &box->events[i].event;
        const struct gpu_grant *new = event->gpus.items, *old = before->gpus.items;
        if (before->job != event->job || (before->type != EVENT_ALLOCATED && before->type != EVENT_RESTORING))
            continue;
        for (size_t k = 0; k < event->gpus.count && k < before->gpus.count; k++)
            if (!text_equal(new[k].uuid, old[k].uuid))
                return true;
        return false;
    }
    return false;
}

static void count_parks(struct box *box)
{
    uint64_t *counts = box->tally.counts;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        bool is_refused = event->text != NULL;
        counts[TALLY_PARKS_PREEMPTED] += event->type == EVENT_PARK && event->park_cause == PARK_PREEMPTED;
        counts[TALLY_PARKS_TIME_LIMIT] += event->type == EVENT_PARK && event->park_cause == PARK_TIME_LIMIT;
        counts[TALLY_PARKS] += event->type == EVENT_PARKED && !is_refused;
        counts[TALLY_PARKS_WIDE] += event->type == EVENT_PARKED && event->park_bytes > event->park_rank_bytes;
        counts[TALLY_PARK_RETURNS_REFUSED] += event->type == EVENT_PARKED && is_refused;
        counts[TALLY_PARK_RETURNS] += event->type == EVENT_UNPARKED && !is_refused;
        counts[TALLY_PARKS_REFUSED] += event->type == EVENT_UNPARKED && is_refused;
        counts[TALLY_PARK_MOVES] += event->type == EVENT_RESTORING && is_move(box, i);
    }
}

static void count_change(struct box *box, const struct cluster_change *change)
{
    box->tally.counts[TALLY_NODE_DRAINS] += change->kind == CHANGE_NODE_DRAIN;
    box->tally.counts[TALLY_RESERVATIONS] += change->kind == CHANGE_RESERVE;
}

static void count_events(struct box *box)
{
    static const uint32_t kinds[EVENT_TYPES] = {
        // one more than the kind; 0: not counted
        [EVENT_PREEMPTED] = TALLY_PREEMPTIONS + 1,
        [EVENT_REQUEUED] = TALLY_REQUEUES + 1,
        [EVENT_RETURNED] = TALLY_RETURNS + 1,
        [EVENT_SUSPENDED] = TALLY_SUSPENSIONS + 1,
        [EVENT_CONTINUED] = TALLY_SUSPENSIONS + 1,
        [EVENT_EDITED] = TALLY_EDITS + 1,
    };
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        bool is_end = event->type == EVENT_ENDED || event->type == EVENT_REQUEUED;
        if (event->type == EVENT_CLUSTER)
            count_change(box, event->change.items);
        if (kinds[event->type] != 0)
            box->tally.counts[kinds[event->type] - 1]++;
        box->tally.counts[TALLY_LOSSES] += is_end && event->end == END_NODE_LOST;
        box->tally.counts[TALLY_CANCELS] += event->type == EVENT_ENDED && event->end == END_CANCELLED;
    }
}

void box_judge(struct box *box)
{
    struct error err = { 0 };
    size_t count = 0, asked = 0;
    struct job **jobs = box_fold(box, &count);
    for (size_t i = 0; i < box->n_asks; i++) {
        const struct ask *ask = &box->asks[i];
        if (ask->job == 0)
            box_break(box, "a client never got an answer", 0);
        else if (ask->job >= count || jobs[ask->job] == NULL)
            box_break(box, "an acknowledged job is lost", ask->job);
    }
    for (size_t i = 0; i < count; i++) {
        if (jobs[i] == NULL)
            continue;
        asked += jobs[i]->array_job == 0;
        judge_job(box, jobs[i]);
        if (job_is_array(jobs[i]))
            judge_array(box, jobs, count, jobs[i]);
    }
    if (asked > box->n_asks)
        box_break(box, "there are more jobs than requests", asked);
    size_t decisions = 0;
    _cleanup_free_ char *difference = box_replay(box->events, box->n_events, jobs, &decisions);
    box->tally.counts[TALLY_DECISIONS] += decisions;
    count_events(box);
    count_parks(box);
    if (difference != NULL) {
        box_break(box, "its journal does not replay to the same decisions", 0);
        (void)fprintf(stderr, "%s\n", difference);
    }
    for (size_t i = 0; i < count; i++)
        job_free(jobs[i]);
    free(jobs);
    judge_nodes(box);
    judge_reservations(box);
    if (box->core == NULL || sched_invariant(box->core->sched, &err) < 0 || box->core->active_first != NULL)
        box_break(box, "the ledger is not at rest", 0);
}
