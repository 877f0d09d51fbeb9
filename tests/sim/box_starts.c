/* SPDX-License-Identifier: MIT */
/* What must be true of each start, and of each end without one: given the jobs as the events before it left
 * them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "box.h"
#include "controller/core/describe.h"
#include "job/array.h"

/* The time limit of a parked job stands still. */
static void judge_parked(struct box *box, const struct job *job, const struct job_event *event)
{
    bool is_limit = (event->type == EVENT_PARK && event->park_cause == PARK_TIME_LIMIT) ||
                    (event->type == EVENT_STOP && event->reason == END_TIME_LIMIT);
    if (event->type == EVENT_PARK && job->ask->no_park && event->park_cause != PARK_FOUND)
        box_break(box, "it was parked although it never is", job->id);
    const struct job_ask *ask = job->ask;
    bool is_kept = job_is_wide(job) || ask->preemptible || ask->gpu_mem != 0 || ask->gpu_share != 0 ||
                   job->array_job != 0 || job_run(job)->suspended_ms != 0;
    if (event->type == EVENT_PARK && park_cause_is_rule(event->park_cause) && is_kept)
        box_break(box, "the scheduler parked it by its own rule, against the rule", job->id);
    if (is_limit && job_is_parked(job))
        box_break(box, "its time limit passed while it was parked", job->id);
}

static void judge_deadline(struct box *box, const struct job *job, const struct job_event *event)
{
    if (event->type != EVENT_STOP || event->reason != END_DEADLINE)
        return;
    if (job->ask->deadline_ms == 0 || event->wall_ms < job->ask->deadline_ms)
        box_break(box, "it was ended for a deadline that had not come", job->id);
    box->tally.counts[TALLY_DEADLINES]++;
}

/* --- dependencies --- */

/* It may have been requeued since. The start that its node reports with its end may be earlier than what was
 * heard of it before, because the clock of the node is another one, but not than its submit. */
static bool has_begun(const struct box *box, const struct job_event *now, uint64_t id, int64_t delay_ms)
{
    int64_t earliest_ms = 0;
    for (size_t i = 0; i < box->n_events && &box->events[i].event != now; i++) {
        const struct job_event *event = &box->events[i].event;
        if (event->job != id)
            continue;
        if (event->type == EVENT_SUBMITTED)
            earliest_ms = event->wall_ms;
        if ((event->type == EVENT_STARTED || event->type == EVENT_ENDED) &&
            earliest_ms + delay_ms <= now->wall_ms)
            return true;
    }
    return false;
}

static bool has_come_true(const struct box *box, struct job *const *jobs, const struct ask_after *after,
    const struct job_event *now)
{
    const struct job *other = jobs[box_index(after->job)];
    bool is_over = other != NULL && other->state == JOB_DONE;
    if (after->kind == AFTER_START)
        return (is_over && other->ended_ms + after->delay_ms <= now->wall_ms) ||
               has_begun(box, now, after->job, after->delay_ms);
    return is_over && after_comes_true(after->kind, core_is_ok(other));
}

static bool is_never(struct job *const *jobs, const struct ask_after *after)
{
    const struct job *other = jobs[box_index(after->job)];
    return other != NULL && other->state == JOB_DONE && !after_comes_true(after->kind, core_is_ok(other));
}

static void judge_dependency(
    struct box *box, struct job *const *jobs, const struct job *job, const struct job_event *event)
{
    _cleanup_free_ struct ask_after *after = NULL;
    size_t count = 0, n_true = 0, n_never = 0;
    if (job->ask->after == NULL || parse_after(job->ask->after, &after, &count, NULL) < 0 || count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        n_true += has_come_true(box, jobs, &after[i], event);
        n_never += is_never(jobs, &after[i]);
    }
    bool is_any = after[0].is_any;
    if (event->type == EVENT_ALLOCATED && job->attempt == 0 && n_true < (is_any ? 1 : count))
        box_break(box, "it began before its dependencies were satisfied", job->id);
    if (event->type == EVENT_STOP && event->reason == END_DEPENDENCY) {
        if (n_never < (is_any ? count : 1))
            box_break(box, "it was ended for a dependency that could be satisfied", job->id);
        box->tally.counts[TALLY_NEVERS]++;
    }
}

/* Element 3 of an array that waits for another by pairs begins when element 3 of that has ended well. */
static void judge_pair(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event)
{
    const struct job *array = job->array_job != 0 ? jobs[box_index(job->array_job)] : NULL;
    bool is_start = event->type == EVENT_ALLOCATED && job->attempt == 0;
    bool is_given_up = event->type == EVENT_STOP && event->reason == END_DEPENDENCY;
    _cleanup_free_ struct ask_after *after = NULL;
    size_t count = 0;
    if (array == NULL || array->ask->after == NULL || (!is_start && !is_given_up) ||
        parse_after(array->ask->after, &after, &count, NULL) < 0 || after[0].kind != AFTER_CORR)
        return;
    const struct job *other = jobs[box_index(after[0].job)];
    for (size_t i = 1; i <= highest; i++)
        if (jobs[i] != NULL && jobs[i]->array_job == after[0].job && jobs[i]->array_index == job->array_index)
            other = jobs[i];
    bool is_over = other != NULL && other->state == JOB_DONE;
    if (!is_over || core_is_ok(other) != is_start)
        box_break(
            box, "it began, or was given up, before its partner in the other array had ended so", job->id);
    box->tally.counts[TALLY_PAIRS] += is_start;
}

/* --- its resources --- */

static void judge_name(struct box *box, struct job *const *jobs, const struct job *job)
{
    for (uint64_t i = 1; text_equal(job->name, BOX_SINGLETON) && i < box_index(job->id); i++)
        if (jobs[i] != NULL && jobs[i]->uid == job->uid && text_equal(jobs[i]->name, BOX_SINGLETON) &&
            jobs[i]->state != JOB_DONE)
            box_break(box, "it began beside another of its name", job->id);
}

/* One that is committed behind another, and when it has the GPUs of that. */
static void judge_array(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event)
{
    const struct job *array = job->array_job != 0 ? jobs[box_index(job->array_job)] : NULL;
    unsigned active = 0;
    if (array != NULL && strchr(array->ask->array, '%') == NULL)
        return;
    for (size_t i = 1; array != NULL && i <= highest; i++)
        active += jobs[i] != NULL && jobs[i] != job && jobs[i]->id != event->behind &&
                  jobs[i]->array_job == array->id && job_holds_gpus(jobs[i]);
    if (active >= BOX_ELEMENTS)
        box_break(box, "it began beside as many elements of its array as may run", job->id);
}

static void judge_request(struct box *box, const struct job *job, const struct job_event *event)
{
    const struct job_ask *ask = job->ask;
    const struct gpu_grant *grants = event->gpus.items;
    uint32_t nodes = event->nodes.count > 0 ? (uint32_t)event->nodes.count : 1;
    if (event->gpus.count != ask->gpus || nodes != (ask->nodes > 0 ? ask->nodes : 1))
        box_break(box, "it got other numbers of GPUs or nodes than it asked for", job->id);
    _cleanup_free_ struct ask_gpu *wanted = NULL;
    size_t count = 0;
    if (ask->gpu_ids == NULL || parse_gpu_ids(ask->gpu_ids, &wanted, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count && i < event->gpus.count; i++)
        if (grants[i].index != wanted[i].index)
            box_break(box, "it got other GPUs than it named", job->id);
}

/* Whoever has the GPU too: shares of their own, of no more memory than there is. */
static void judge_grant(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct gpu_grant *grant)
{
    uint64_t memory = grant->memory;
    for (size_t i = 1; i <= highest; i++) {
        if (jobs[i] == NULL || jobs[i] == job || !job_holds_gpus(jobs[i]))
            continue;
        const struct gpu_grant *others = jobs[i]->grants.items;
        for (size_t k = 0; k < jobs[i]->grants.count; k++) {
            if (!text_equal(others[k].uuid, grant->uuid))
                continue;
            if (grant->slot == 0 || others[k].slot == 0 || grant->slot == others[k].slot)
                box_break(box, "it got a GPU that another job has", job->id);
            memory += others[k].memory;
        }
    }
    if (memory > NODE_GPU_MEMORY)
        box_break(box, "it got memory of a GPU that is booked already", job->id);
}

/* --- the limits of the settings --- */

static void note_settings(struct box *box, const struct cluster_change *change)
{
    if (change->kind == CHANGE_SETTINGS)
        box->settings = change->text;
}

static uint32_t setting_of(const struct box *box, const char *name)
{
    const char *at = box->settings != NULL ? strstr(box->settings, name) : NULL;
    return at != NULL ? (uint32_t)strtoul(at + strlen(name), NULL, 10) : 0;
}

static void judge_node(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event, const char *node)
{
    size_t running = 1;
    for (size_t i = 1; i <= highest; i++)
        running += jobs[i] != NULL && jobs[i] != job && jobs[i]->id != event->behind &&
                   job_holds_gpus(jobs[i]) && job_rank_on(jobs[i], node) >= 0;
    uint32_t limit = setting_of(box, "\nnode_jobs=");
    if (limit > 0 && running > limit)
        box_break(box, "it began beside as many jobs as a node may run", job->id);
}

/* A user or group with its own line has these limits, others have the defaults. */
static struct account_limits limits_of(const struct box *box, bool is_group, uint32_t id)
{
    struct account_limits limits = {
        .jobs = setting_of(box, is_group ? "\ngroup_max_jobs=" : "\nuser_max_jobs="),
        .gpu_milli = setting_of(box, is_group ? "\ngroup_max_gpu_milli=" : "\nuser_max_gpu_milli="),
    };
    char line[64];
    (void)snprintf(line, sizeof(line), "\naccount=%c:%" PRIu32 " ", is_group ? 'g' : 'u', id);
    const char *at = box->settings != NULL ? strstr(box->settings, line) : NULL;
    if (at != NULL)
        (void)sscanf(at + strlen(line), "%*s %" SCNu32 " %" SCNu32, &limits.jobs, &limits.gpu_milli);
    return limits;
}

static void judge_limits(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event, bool is_group)
{
    struct account_limits limits = limits_of(box, is_group, is_group ? job->gid : job->uid);
    size_t gpus = event->gpus.count, running = 1;
    for (size_t i = 1; i <= highest; i++) {
        const struct job *other = jobs[i];
        if (other == NULL || other == job || other->id == event->behind || !job_holds_gpus(other) ||
            (is_group ? other->gid != job->gid : other->uid != job->uid))
            continue;
        gpus += other->ask->gpu_mem > 0 ? 0 : other->grants.count;
        running++;
    }
    bool is_counted = job->ask->gpu_mem == 0 && event->gpus.count > 0;
    if (is_counted && limits.gpu_milli > 0 && gpus > limits.gpu_milli / 1000)
        box_break(box, "it got more GPUs than its user or group may have", job->id);
    if (limits.jobs > 0 && running > limits.jobs)
        box_break(box, "it began beside as many jobs as its user or group may run", job->id);
}

/* The one of which the nodes change; of a job that may run in others too, no node is wrong. */
static void judge_partition(struct box *box, const struct job *job, const char *node)
{
    static const char line[] = "\npartition=" BOX_PARTITION " ";
    const char *at = box->settings != NULL ? strstr(box->settings, line) : NULL;
    if (at == NULL || !text_equal(job->ask->partition, BOX_PARTITION))
        return;
    at += strlen(line);
    at += strcspn(at, " \n");
    size_t length = strcspn(at, "\n");
    if (length == 0) // all nodes
        return;
    char nodes[64];
    (void)snprintf(nodes, sizeof(nodes), "%.*s", (int)length, at);
    if (strstr(nodes, node) == NULL)
        box_break(box, "it began outside of its partition", job->id);
}

static void judge_place(struct box *box, struct job *const *jobs, size_t highest, const struct job *job,
    const struct job_event *event, const char *node)
{
    judge_node(box, jobs, highest, job, event, node);
    judge_partition(box, job, node);
}

void box_judge_event(struct box *box, struct job *const *jobs, size_t highest, const struct job_event *event)
{
    box_judge_park(box, jobs, highest, event);
    if (event->type == EVENT_CLUSTER) {
        note_settings(box, event->change.items);
        return;
    }
    const struct job *job = jobs[box_index(event->job)];
    const struct gpu_grant *grants = event->gpus.items;
    const struct job_node *nodes = event->nodes.items;
    bool is_start = event->type == EVENT_ALLOCATED;
    judge_parked(box, job, event);
    judge_deadline(box, job, event);
    judge_dependency(box, jobs, job, event);
    judge_pair(box, jobs, highest, job, event);
    bool is_early = is_start && event->is_early != 0;
    bool is_behind = is_start && event->behind != 0;
    bool takes = (is_start && !is_early && !is_behind) || event->type == EVENT_RESTORING ||
                 event->type == EVENT_INHERITS;
    if (is_behind)
        box_judge_behind(box, jobs, highest, job, event);
    if (is_early)
        box_judge_early(box, jobs, highest, job, event);
    box_note_early(box, job, event);
    for (size_t i = 0; takes && i < event->gpus.count; i++)
        judge_grant(box, jobs, highest, job, &grants[i]);
    if (is_start || event->type == EVENT_INHERITS)
        judge_array(box, jobs, highest, job, event);
    if (!is_start)
        return;
    if (event->wall_ms < job->ask->begin_ms)
        box_break(box, "it began before its time", job->id);
    if (job->ask->deadline_ms != 0 && event->wall_ms > job->ask->deadline_ms && job->attempt == 0)
        box_break(box, "it began after its deadline", job->id);
    if (job->hold != 0)
        box_break(box, "it began while it was held", job->id);
    judge_name(box, jobs, job);
    judge_request(box, job, event);
    if (is_early)
        return; // it has no GPUs yet: see the returns of parked jobs
    judge_limits(box, jobs, highest, job, event, false);
    judge_limits(box, jobs, highest, job, event, true);
    if (event->nodes.count == 0)
        judge_place(box, jobs, highest, job, event, event->node);
    for (size_t i = 0; i < event->nodes.count; i++)
        judge_place(box, jobs, highest, job, event, nodes[i].name);
}
