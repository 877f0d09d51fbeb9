/* SPDX-License-Identifier: MIT */
/*
 * Parked jobs return at the latest when they are due (sched_parked.c): on any free GPUs of their node, or on
 * those that are owed to them, whose jobs are then parked, or preempted if they cannot be. Such a return
 * ignores rank and limits: until then the job was in the queue like every other.
 *
 * A parked job whose GPUs are partly idle, and that cannot return because others still run on the rest, gets
 * its GPUs back before it is due if it would no longer be parked for those others: if their remaining time,
 * times park_ratio and times the GPUs that it left per GPU in use, exceeds its own remaining time. Otherwise
 * most of a wide job's GPUs could be idle for one long guest, because guests take longer than expected, and
 * owed GPUs are closed to jobs that cannot be parked. The check is made only if nothing else starts, so no
 * other job could use the idle GPUs. The jobs that run there are parked for it like hosts for a guest, under
 * the same bounds.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/sched_private.h"

static bool is_due(const struct sched *sched, const struct parked_job *parked)
{
    return parked->job->blockers == 0 && parked->job->run == NULL && parked->due_ms <= sched->now_ms;
}

struct due {
    uint64_t job;
    int64_t bound_ms;
};

static int compare_due(const void *a, const void *b)
{
    const struct due *left = a, *right = b;
    if (left->bound_ms != right->bound_ms)
        return left->bound_ms < right->bound_ms ? -1 : 1;
    return (left->job > right->job) - (left->job < right->job);
}

/* True if the job may have these GPUs, regardless of their current jobs and of holds and debts. */
static bool can_be_open(const struct sched *sched, const struct sched_job *job, const struct allocation *left)
{
    const struct cluster_node *node = &sched->cluster.nodes[left->nodes[0].node];
    uint64_t reservations[16];
    struct fit fit;
    sched_fit_of(sched, job->class, reservations, 16, &fit);
    for (size_t i = 0; i < left->n_gpus; i++) {
        struct cluster_gpu gpu = node->gpus[left->gpus[i].gpu];
        gpu.is_exclusive = false;
        gpu.share_slots = gpu.share_booked = 0;
        gpu.memory_booked = 0;
        gpu.hold_from_ms = gpu.return_ms = TIME_NEVER;
        if (!fit_gpu(&sched->cluster, node, &gpu, &job->class->key.request, &fit))
            return false;
    }
    return node->is_up && !node->is_drained;
}

static bool is_free(const struct sched *sched, const struct allocation *left)
{
    const struct cluster_node *node = &sched->cluster.nodes[left->nodes[0].node];
    for (size_t i = 0; i < left->n_gpus; i++)
        if (!cluster_gpu_is_whole(&node->gpus[left->gpus[i].gpu]))
            return false;
    return true;
}

bool sched_shares_gpu(const struct allocation *a, const struct allocation *b)
{
    for (size_t i = 0; i < a->n_gpus; i++)
        for (size_t k = 0; k < b->n_gpus; k++)
            if (a->gpus[i].node == b->gpus[k].node && a->gpus[i].gpu == b->gpus[k].gpu)
                return true;
    return false;
}

/* If it were parked before, it would be due before that job, which would have its GPUs for nothing: its bound
 * grows by park_bound times what it runs, and by that time itself. A narrower one may find others. */
static int64_t precedes_until(
    const struct sched *sched, const struct sched_run *run, const struct parked_job *parked)
{
    int64_t bound_ms = sched_latest_return(sched, parked->job->entry.job);
    int64_t early_ms = bound_ms - sched->now_ms - sched_run_budget(sched, run);
    bool would_be_first = early_ms >= 0 && run->allocation.n_gpus >= parked->owed.n_gpus &&
                          run->started_ms != 0 && !run->is_giving_way && sched_run_can_park(sched, run);
    return would_be_first ? sched->now_ms + early_ms / (sched->settings.park_bound + 1) + 1 : 0;
}

int64_t sched_return_waits_until(struct sched *sched, const struct parked_job *parked)
{
    const struct node_runs *runs = sched_node_runs(sched, parked->owed.nodes[0].node);
    int64_t until_ms = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const struct sched_run *run = runs->runs[i];
        if (!sched_shares_gpu(&run->allocation, &parked->owed))
            continue;
        int64_t half_ms = run->allocated_ms + sched_park_slot(sched) / 2;
        int64_t first_ms = precedes_until(sched, run, parked);
        int64_t had_ms = half_ms > first_ms ? half_ms : first_ms;
        until_ms = had_ms > until_ms ? had_ms : until_ms;
    }
    return until_ms;
}

/* It cannot be parked, and starts again. */
static void reclaim(struct sched *sched, struct sched_run *run, uint64_t parked)
{
    const struct sched_callbacks *callbacks = &sched->callbacks;
    if (callbacks->reclaim == NULL) {
        sched_give_way(sched, run, "its GPUs are due to a parked job");
        return;
    }
    run->is_giving_way = true;
    sched->counts.preemptions++;
    callbacks->reclaim(callbacks->arg, run->job->entry.job, parked);
}

/* By their ids: a callback may end one immediately. */
static void clear_gpus(struct sched *sched, const struct parked_job *parked)
{
    const struct allocation *left = &parked->owed;
    uint64_t parked_id = parked->job->entry.job;
    const struct node_runs *runs = sched_node_runs(sched, left->nodes[0].node);
    _cleanup_free_ uint64_t *ids = xcalloc(runs->count + 1, sizeof(*ids));
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++)
        if (sched_shares_gpu(&runs->runs[i]->allocation, left))
            ids[count++] = runs->runs[i]->job->entry.job;
    for (size_t i = 0; i < count; i++) {
        struct sched_job *job = sched_find(sched, ids[i]);
        if (job != NULL && job->run != NULL && sched_parks(sched) && sched_run_can_park(sched, job->run))
            sched_give_back(sched, job->run, 0, 0);
        job = sched_find(sched, ids[i]);
        if (job != NULL && job->run != NULL && !job->run->is_giving_way) // it may have refused immediately
            reclaim(sched, job->run, parked_id);
    }
}

static bool start_where_free(struct sched *sched, struct sched_job *job)
{
    uint64_t reservations[16];
    _cleanup_(allocation_clear) struct allocation found = { 0 };
    struct fit fit;
    sched_fit_of(sched, job->class, reservations, 16, &fit);
    fit.end_ms = sched->now_ms; // holds for others are planned again
    bool has = placement_choose(sched->settings.placement, sched->placement_state, &sched->cluster,
        &job->class->key.request, &fit, &found, &sched->counts.index_work);
    if (has)
        sched_start(sched, job, &found);
    return has;
}

/* Starts it directly, ignoring GPUs owed to others: it is due before them. */
static bool start_where_it_was(struct sched *sched, struct sched_job *job, struct allocation *left)
{
    if (!can_be_open(sched, job, left) || !is_free(sched, left))
        return false;
    sched_start(sched, job, left);
    return true;
}

static void return_one(struct sched *sched, struct sched_job *job)
{
    struct parked_job *parked = job->rules->parked;
    if (can_be_open(sched, job, &parked->owed) && !is_free(sched, &parked->owed)) {
        (void)sched_parked_lift(sched, job);
        bool is_back = start_where_free(sched, job);
        if (is_back) {
            sched_parked_began(sched, parked);
            return;
        }
        sched_parked_put(sched, parked);
        if (sched_return_waits_until(sched, parked) > sched->now_ms)
            return;
        clear_gpus(sched, parked);
    }
    (void)sched_parked_lift(sched, job);
    if (start_where_it_was(sched, job, &parked->owed) || start_where_free(sched, job))
        sched_parked_began(sched, parked);
    else
        sched_parked_put(sched, parked);
}

void sched_return_due(struct sched *sched)
{
    if (sched->n_parked == 0 || sched->is_fork)
        return;
    sched_parked_reckon(sched);
    if (sched->are_debts_in_question)
        sched_debts_mend(sched);
    struct due *due = xcalloc(sched->n_parked + 1, sizeof(*due));
    size_t count = 0;
    for (size_t i = 0; i < sched->n_parked; i++)
        if (is_due(sched, sched->parked[i])) {
            uint64_t id = sched->parked[i]->job->entry.job;
            due[count++] = (struct due){ id, sched_latest_return(sched, id) };
        }
    qsort(due, count, sizeof(*due), compare_due);
    for (size_t i = 0; i < count; i++) {
        struct sched_job *job = sched_find(sched, due[i].job);
        if (job != NULL && job->rules->parked != NULL && is_due(sched, job->rules->parked))
            return_one(sched, job);
    }
    free(due);
}

/* --- before it is due --- */

static uint32_t count_used(const struct sched *sched, const struct allocation *left)
{
    uint32_t used = 0;
    for (size_t i = 0; i < left->n_gpus; i++)
        used += !cluster_gpu_is_whole(&sched->cluster.nodes[left->gpus[i].node].gpus[left->gpus[i].gpu]);
    return used;
}

static bool may_leave(const struct sched *sched, const struct sched_run *run, const struct queue_class *class)
{
    return !run->is_giving_way && class_priority(run->job->class) <= class_priority(class) &&
           !sched_is_preferred(run->job->class, class) && !sched_run_is_kept(sched, run) &&
           sched_run_can_park(sched, run);
}

/* The jobs on its GPUs, if all of them may be parked. 0: not all may. */
static size_t list_guests(const struct sched *sched, const struct parked_job *parked,
    struct sched_run *guests[TRIAL_MAX], int64_t *ret_longest_ms)
{
    const struct node_runs *runs = &sched->nodes[parked->owed.nodes[0].node];
    size_t count = 0;
    *ret_longest_ms = 0;
    for (size_t i = 0; i < runs->count; i++) {
        struct sched_run *run = runs->runs[i];
        if (!sched_shares_gpu(&run->allocation, &parked->owed))
            continue;
        if (count == TRIAL_MAX || !may_leave(sched, run, parked->job->class))
            return 0;
        int64_t left_ms = run->expected_end_ms - sched->now_ms;
        *ret_longest_ms = left_ms > *ret_longest_ms ? left_ms : *ret_longest_ms;
        guests[count++] = run;
    }
    return count;
}

static bool recall(struct sched *sched, struct parked_job *parked)
{
    struct sched_run *guests[TRIAL_MAX];
    struct sched_job *job = parked->job;
    uint32_t used = count_used(sched, &parked->owed), all = (uint32_t)parked->owed.n_gpus;
    int64_t longest_ms;
    bool is_waiting = job->blockers == 0 && job->entry.class != NULL && !job->entry.class->is_parked;
    if (!is_waiting || used == 0 || used == all || parked->owed.nodes[0].node >= sched->n_nodes)
        return false;
    size_t count = list_guests(sched, parked, guests, &longest_ms);
    if (count == 0 || longest_ms <= parked->needs_ms / sched->settings.park_ratio / all * used)
        return false;
    uint64_t reservations[16];
    struct fit fit;
    (void)sched_parked_lift(sched, job);
    sched_fit_of(sched, job->class, reservations, 16, &fit);
    fit.end_ms = sched->now_ms;
    bool is_good = sched_would_start(sched, job->class, &fit, guests, count, 0);
    sched_parked_put(sched, parked);
    return is_good && sched_give_back_all(sched, guests, count, job->entry.job, 0);
}

void sched_recall(struct sched *sched)
{
    for (size_t i = 0; i < sched->n_parked && sched_parks(sched); i++)
        if (recall(sched, sched->parked[i]))
            return;
}
