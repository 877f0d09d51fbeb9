/* SPDX-License-Identifier: MIT */
/*
 * Preemption for jobs that are expected to end sooner. Waiting and running jobs have an index, the Gittins
 * index of their run time distribution given the elapsed time (history_cell.h), low for those that are likely
 * to end soon. A blocked job preempts running jobs whose index is HYSTERESIS times as large, on the node with
 * the lowest loss: the sum of GPUs / index. An index changes only when a job reaches another stage or a job
 * of the same or a near burst ends, which is rare enough to avoid thrashing; and no job is preempted within
 * its quantum.
 */
#include "sched/sched_private.h"

#define HYSTERESIS 2.0 // results are similar between 1.2 and 4; below, equal jobs swap places

static double index_of(const struct sched_run *run)
{
    return run->index_ms > 1 ? (double)run->index_ms : 1;
}

/* Run time does not count as waiting. A job that was kept waiting for the age cap is not delayed any
 * further. */
static bool has_waited(
    const struct sched *sched, const struct queue_class *class, int64_t submit_ms, int64_t until_ms)
{
    int64_t cap_ms = sched->settings.age_cap_ms;
    return cap_ms > 0 && until_ms - submit_ms - history_stage_ms(class->key.stage) >= cap_ms;
}

static bool may_move(const struct sched *sched, const struct queue_class *class, const struct sched_run *run)
{
    const struct class_key *key = &run->job->class->key;
    int64_t held = class_priority(run->job->class), wanted = class_priority(class);
    if (run->is_idle && !class->key.is_preemptible && held <= wanted)
        return true;
    if (sched_run_is_kept(sched, run) ||
        has_waited(sched, run->job->class, run->job->entry.submit_ms, run->allocated_ms))
        return false;
    if (held != wanted)
        return held < wanted;
    if (key->is_preemptible != class->key.is_preemptible)
        return key->is_preemptible;
    if (has_waited(sched, class, class->first->submit_ms, sched->now_ms))
        return true;
    return index_of(run) > HYSTERESIS * (double)class->expected_ms;
}

/* Jobs already being preempted first, then those expected to take longest. */
static int compare_victims(const void *a, const void *b)
{
    const struct sched_run *left = *(struct sched_run *const *)a, *right = *(struct sched_run *const *)b;
    if (left->is_giving_way != right->is_giving_way)
        return left->is_giving_way ? -1 : 1;
    if (left->index_ms != right->index_ms)
        return left->index_ms > right->index_ms ? -1 : 1;
    return (left->job->entry.job < right->job->entry.job) - (left->job->entry.job > right->job->entry.job);
}

static double loss_of(const struct sched *sched, const struct sched_run *run)
{
    return (double)run->gpu_milli / SHARE_WHOLE / index_of(run);
}

static const struct way_rules rules = {
    .may_move = may_move,
    .compare = compare_victims,
    .loss = loss_of,
    .why = "jobs with an earlier expected end need its GPUs",
};

/* Bound to listed nodes or GPUs, as a parked job is to those that it left. */
static bool is_bound(const struct sched_request *request)
{
    return request->nodelist != NULL || request->n_allow > 0;
}

/* Whole GPUs: such requests can be compared. may_move() differs for a class that has waited, or that may
 * itself be preempted; and reservations depend on the owner and the limit. */
static bool is_comparable(const struct sched *sched, const struct queue_class *class)
{
    const struct sched_request *request = &class->key.request;
    bool is_plain = request->gpus > 0 && request->nodes == 0 && request->gpus_per_node == 0 &&
                    !request_is_shared(request) && request->n_picks == 0 && request->model == NULL &&
                    request->partition == NULL && request->exclude == NULL && !request->is_exclusive &&
                    request->share_kind == 0;
    return is_plain && sched->n_reservations == 0 && !class->key.is_preemptible &&
           !has_waited(sched, class, class->first->submit_ms, sched->now_ms);
}

/* Starts take GPUs, and a started job is protected for its quantum: within a pass no request becomes easier
 * until jobs are preempted. A request that fails on all nodes fails on one, but not the reverse: only unbound
 * requests are recorded. */
static bool must_fail(const struct sched *sched, const struct queue_class *class)
{
    const struct learnt_failure *failure = &sched->failure;
    const struct sched_request *request = &class->key.request;
    return failure->gpus > 0 && request->gpus >= failure->gpus && request->cpu_milli >= failure->cpu_milli &&
           request->memory >= failure->memory && class->expected_ms >= failure->expected_ms &&
           class_priority(class) <= failure->priority;
}

static void note_failure(struct sched *sched, const struct queue_class *class)
{
    const struct sched_request *request = &class->key.request;
    sched->failure = (struct learnt_failure){ .gpus = request->gpus,
        .cpu_milli = request->cpu_milli,
        .memory = request->memory,
        .expected_ms = class->expected_ms,
        .priority = class_priority(class),
        .searches = sched->failure.searches };
}

bool sched_learnt_make_way(struct sched *sched, struct queue_class *class, const struct fit *fit)
{
    uint64_t n_over = sched->n_over;
    bool can_compare = is_comparable(sched, class);
    if (can_compare && must_fail(sched, class))
        return false;
    sched->failure.searches++;
    bool is_made = sched_make_ways(sched, class, fit, &rules);
    if (is_made)
        sched->failure.gpus = 0;
    else if (can_compare && !is_bound(&class->key.request) &&
             (sched->failure.gpus == 0 || class->key.request.gpus < sched->failure.gpus))
        note_failure(sched, class);
    bool is_free = sched->n_over != n_over;
    sched->n_over = n_over; // including jobs just preempted
    return is_free;
}

/* The index of runs of this class's burst at that stage, which is the same for all of them. */
static int64_t index_at(const struct sched *sched, const struct queue_class *class, unsigned stage)
{
    struct estimate estimate;
    sched_class_estimate(sched, &class->key, history_stage_ms(stage), ESTIMATE_INDEX, &estimate);
    return estimate.index_ms;
}

void sched_learnt_near(struct sched *sched, struct queue_class *const *near, size_t count)
{
    int64_t known[HISTORY_NEAR][HISTORY_STAGES] = { 0 }; // 0: not reckoned yet
    for (size_t i = 0; i < sched->n_runs; i++) {
        struct sched_run *run = sched->runs[i];
        uint64_t burst = run->job->class->key.burst;
        for (size_t k = 0; burst != 0 && k < count; k++) {
            if (near[k]->key.burst != burst)
                continue;
            int64_t *index = &known[k][run->stage];
            if (*index == 0)
                *index = index_at(sched, near[k], run->stage);
            run->index_ms = *index;
            break;
        }
    }
}
