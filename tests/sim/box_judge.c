/* SPDX-License-Identifier: MIT */
/* What must be true in the end. The fold of the durable events is the only witness besides the nodes
 * themselves. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "box.h"
#include "box_journal.h"
#include "controller/core/state.h"

/* By the events that are durable. */
static const struct job_event *find_start(const struct box *box, const struct spool_id *id, uint64_t token)
{
    for (size_t i = box->n_events; i-- > 0;) {
        const struct job_event *event = &box->events[i].event;
        bool is_its = event->job == id->job && event->attempt == id->attempt;
        if (is_its &&
            (event->type == EVENT_ENDED || event->type == EVENT_REQUEUED || event->type == EVENT_RETURNED))
            return NULL;
        if (is_its && event->type == EVENT_ALLOCATED)
            return event->token == token ? event : NULL;
    }
    return NULL;
}

/* The next mgpud may lack everything that is not durable. (A rank that is lost, and has not run, may be
 * released while others are left; and what was prepared on one node may have begun on another.) */
void box_check_sent(struct box *box, struct place *place, const struct record_type *type, const void *message)
{
    const struct message_launch *launch = message;
    const struct message_release_attempt *release = message;
    if (type == &message_launch_record && find_start(box, &launch->id, launch->token) == NULL)
        box_break(box, "it was launched before its start was durable", launch->id.job);
    const struct job_event *begin =
        type == &message_launch_record ? find_start(box, &launch->id, launch->token) : NULL;
    if (begin != NULL && begin->behind != 0)
        node_expect_behind(&place->node, launch->token);
    box->tally.counts[TALLY_BEHIND_RECALLS] +=
        type == &message_stop_record && ((const struct message_stop *)message)->signal == STOP_UNSTARTED;
    const struct job_event *start =
        type == &message_release_attempt_record ? find_start(box, &release->id, release->token) : NULL;
    if (start != NULL && start->nodes.count == 0 && text_equal(start->node, place->node.name))
        box_break(box, "it was released before its end was durable", release->id.job);
}

static bool was_cancelled(const struct box *box, const struct job *job)
{
    uint64_t asked = job->array_job != 0 ? job->array_job : job->id;
    for (size_t i = 0; i < box->n_asks; i++)
        if (box->asks[i].job == asked)
            return box->asks[i].is_cancelled;
    return false;
}

/* It is unknown whether an attempt ever ran if it was lost with its node or spool. */
static bool went_down(const struct box *box, const struct job *job)
{
    return job->end == END_REBOOT || job->end == END_NODE_LOST ||
           (job->end == END_UNKNOWN && box->tally.counts[TALLY_WIPES] > 0);
}

static bool never_began(const struct job *job)
{
    return job->end == END_DEADLINE || job->end == END_DEPENDENCY;
}

/* It may have run, and ended, after the backup that was restored. */
static bool is_uncertain(const struct box *box, const struct job *job)
{
    size_t at = box_index(job->id);
    return at < box->n_known && box->was_open[at];
}

static void judge_job(struct box *box, const struct job *job)
{
    uint32_t latest = 0, executions = box_executed_attempts(box, job->id, &latest);
    bool is_cancelled = was_cancelled(box, job);
    if (job->state != JOB_DONE)
        box_break(box, "an acknowledged job did not end", job->id);
    if (is_uncertain(box, job))
        return;
    if (!is_cancelled && job->end == END_CANCELLED)
        box_break(box, "it was cancelled without a request", job->id);
    if (job->end == END_TIME_LIMIT && job->ask->time_limit_ms == 0)
        box_break(box, "it was ended for a time limit that it did not have", job->id);
    if (job->end == END_IDLE_TIMEOUT && job->ask->idle_timeout_ms == 0)
        box_break(box, "it was ended for an idleness that is nobody's business", job->id);
    if (job_is_array(job))
        return;
    if (executions > 1 + job->preemptions)
        box_break(box, "it ran twice", job->id);
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
    if (!is_cancelled && latest == 0 && job->end != END_START_FAILED && !never_began(job) &&
        !went_down(box, job))
        box_break(box, "it never ran", job->id);
}

/* Each index of an array that nobody cancelled became one job. */
static void judge_array(struct box *box, struct job **jobs, size_t count, const struct job *array)
{
    unsigned elements = 0;
    for (size_t i = 0; i < count; i++)
        elements += jobs[i] != NULL && jobs[i]->array_job == array->id;
    bool may_lack = was_cancelled(box, array) || never_began(array);
    if (elements > box_elements(box) || (elements < box_elements(box) && !may_lack))
        box_break(box, "its elements are not those that were asked for", array->id);
}

static void judge_nodes(struct box *box)
{
    for (size_t i = 0; i < box->n_places; i++) {
        const struct node *node = &box->places[i].node;
        if (!node->is_off && node_left_over(node) > 0)
            box_break(box, "the spool is not empty", 0);
        if (box->broken == NULL && node->broken != NULL)
            (void)snprintf(
                box->detail, sizeof(box->detail), "%s: %s", node->name, box->broken = node->broken);
    }
}

/* True if it got its previous GPUs. */
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
        counts[TALLY_PARKS_RULE] += event->type == EVENT_PARK && park_cause_is_rule(event->park_cause);
        counts[TALLY_PARKS_DUE] += event->type == EVENT_PARK && event->park_cause == PARK_DUE;
        counts[TALLY_PARKS] += event->type == EVENT_PARKED && !is_refused;
        counts[TALLY_PARKS_WIDE] += event->type == EVENT_PARKED && event->park_bytes > event->park_rank_bytes;
        counts[TALLY_PARK_RETURNS_REFUSED] += event->type == EVENT_PARKED && is_refused;
        counts[TALLY_PARK_RETURNS] += event->type == EVENT_UNPARKED && !is_refused;
        counts[TALLY_PARKS_REFUSED] += event->type == EVENT_UNPARKED && is_refused;
        counts[TALLY_RECONCILED] += event->type == EVENT_RECONCILED;
        counts[TALLY_RECONCILED_PARKED] +=
            event->type == EVENT_RECONCILED && event->park_seen != PARK_SEEN_RUNNING;
        counts[TALLY_PARK_MOVES] += event->type == EVENT_RESTORING && is_move(box, i);
    }
}

static void count_early(struct box *box, struct job **jobs, size_t count)
{
    for (size_t i = 0; i < box->n_events; i++)
        box->tally.counts[TALLY_EARLY] += box->events[i].event.is_early != 0;
    for (size_t i = 0; i < count; i++) {
        const struct job_park *park = jobs[i] != NULL ? job_park(jobs[i]) : NULL;
        box->tally.counts[TALLY_EARLY_GRANTS] += park != NULL && park->granted_ms != 0;
        box->tally.counts[TALLY_EARLY_ENDS] += park != NULL && park->is_early != 0;
    }
}

static void count_change(struct box *box, const struct cluster_change *change)
{
    box->tally.counts[TALLY_NODE_DRAINS] += change->kind == CHANGE_NODE_DRAIN;
    box->tally.counts[TALLY_RESERVATIONS] += change->kind == CHANGE_RESERVE;
    box->tally.counts[TALLY_BARS_OF_ALL] +=
        change->kind == CHANGE_NODE_BAR && change->uid == CLUSTER_ALL_USERS && change->until_ms > 0;
    box->tally.counts[TALLY_REFUSALS] += change->kind == CHANGE_JOB_REFUSED && change->text != NULL;
    box->tally.counts[TALLY_READMISSIONS] += change->kind == CHANGE_JOB_REFUSED && change->text == NULL;
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
    struct job **jobs = box_fold(box, box_judge_event, &count);
    for (size_t i = 0; i < box->n_asks; i++) {
        const struct ask *ask = &box->asks[i];
        size_t at = box_index(ask->job);
        if (ask->undone != 0)
            continue;
        if (ask->job == 0)
            box_break(box, "a client never got an answer", 0);
        else if (at >= count || jobs[at] == NULL || jobs[at]->id != ask->job)
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
    _cleanup_free_ char *difference = box_replay(box->events, box->n_events, jobs, &box->tally);
    count_events(box);
    count_parks(box);
    box->tally.counts[TALLY_RULE_HISTORIES] += box->are_plain;
    count_early(box, jobs, count);
    box_count_behind(box);
    if (difference != NULL) {
        box_break(box, "its journal does not replay to the same decisions", 0);
        (void)fprintf(stderr, "%s\n", difference);
    }
    for (size_t i = 0; i < count; i++)
        job_free(jobs[i]);
    free(jobs);
    judge_nodes(box);
    box_judge_devices(box);
    if (box->core == NULL || sched_invariant(box->core->sched, &err) < 0 || box->core->active_first != NULL)
        box_break(box, "the ledger is not at rest", 0);
}
