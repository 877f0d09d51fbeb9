/* SPDX-License-Identifier: MIT */
/*
 * The GPUs owed to parked jobs: first those that each left. Where it may return to others of the same model
 * (sched_parked_may_have()), a debt may be moved to one of these, so that a job that cannot return its GPUs
 * gets one that was owed. The GPU that then owes it is
 *
 *   - one that is free, or whose job leaves in time: it has certainly ended by then, or has been parked
 *     before and has had its GPU for a slot by then. A job that was never parked might refuse, and would
 *     start again from the beginning although it had nothing to do with the parked job;
 *   - owed to no more than park_layers jobs, so that its job may be parked as well (sched_parked.c).
 *
 * The same then holds for every other GPU whose jobs became due earlier. A job is due so that it, and behind
 * it those with later bounds on each GPU that it is owed, return a slot after each other.
 *
 * Debts are not stored. After a restart, they are again on the GPUs that the jobs left; those on GPUs of jobs
 * that cannot return them move away before anything starts, and so do those of a job that refuses.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"

static bool is_owed_to(const struct parked_job *parked, uint32_t gpu)
{
    for (size_t i = 0; i < parked->owed.n_gpus; i++)
        if (parked->owed.gpus[i].gpu == gpu)
            return true;
    return false;
}

static bool is_on(const struct parked_job *parked, uint32_t node)
{
    return parked->left.nodes[0].node == node;
}

/* --- when they are due --- */

struct bound {
    struct parked_job *parked;
    int64_t ms;
};

/* The latest first. */
static int compare_bounds(const void *a, const void *b)
{
    const struct bound *left = a, *right = b;
    uint64_t left_job = left->parked->job->entry.job, right_job = right->parked->job->entry.job;
    if (left->ms != right->ms)
        return left->ms > right->ms ? -1 : 1;
    return (left_job < right_job) - (left_job > right_job);
}

static size_t list_bounds(const struct sched *sched, uint32_t node, struct bound *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < sched->n_parked; i++) {
        struct parked_job *parked = sched->parked[i];
        if (!is_on(parked, node))
            continue;
        int64_t bound_ms = sched_parked_bound(sched, parked);
        parked->due_ms = bound_ms - sched_park_slot(sched);
        if (!sched_parked_is_held(parked))
            ret[count++] = (struct bound){ parked, bound_ms };
    }
    qsort(ret, count, sizeof(*ret), compare_bounds);
    return count;
}

static void clear_node(struct cluster_node *node)
{
    for (size_t i = 0; i < node->n_gpus; i++) {
        node->gpus[i].return_ms = TIME_NEVER;
        node->gpus[i].parked = 0;
        node->gpus[i].parked_until_ms = 0;
    }
}

static void count_debts(const struct sched *sched, struct cluster_node *node, const struct parked_job *parked)
{
    bool is_due = parked->is_kept && parked->due_ms > sched->now_ms;
    int64_t due_ms = is_due ? sched->now_ms : parked->due_ms;
    for (size_t i = 0; i < parked->owed.n_gpus; i++) {
        struct cluster_gpu *gpu = &node->gpus[parked->owed.gpus[i].gpu];
        gpu->return_ms = due_ms < gpu->return_ms ? due_ms : gpu->return_ms;
        gpu->parked++;
        int64_t until_ms = due_ms + parked->needs_ms;
        gpu->parked_until_ms = until_ms > gpu->parked_until_ms ? until_ms : gpu->parked_until_ms;
    }
}

void sched_debts_reckon(struct sched *sched, uint32_t node)
{
    struct cluster_node *where = &sched->cluster.nodes[node];
    _cleanup_free_ struct bound *bounds = xcalloc(sched->n_parked + 1, sizeof(*bounds));
    size_t count = list_bounds(sched, node, bounds);
    int64_t behind_ms[NODE_GPUS_LIMIT], slot_ms = sched_park_slot(sched);
    clear_node(where);
    for (size_t i = 0; i < where->n_gpus; i++)
        behind_ms[i] = TIME_NEVER;
    for (size_t i = 0; i < count; i++) {
        struct parked_job *parked = bounds[i].parked;
        int64_t until_ms = bounds[i].ms;
        for (size_t k = 0; k < parked->owed.n_gpus; k++) {
            int64_t next_ms = behind_ms[parked->owed.gpus[k].gpu];
            until_ms = next_ms < until_ms ? next_ms : until_ms;
        }
        parked->due_ms = until_ms - slot_ms;
        for (size_t k = 0; k < parked->owed.n_gpus; k++)
            behind_ms[parked->owed.gpus[k].gpu] = parked->due_ms;
        count_debts(sched, where, parked);
    }
}

/* --- as they were --- */

static void save(const struct sched *sched, uint32_t node, struct debts *ret)
{
    size_t count = 0;
    *ret = (struct debts){ .node = node };
    for (size_t i = 0; i < sched->n_parked; i++) {
        const struct allocation *owed = &sched->parked[i]->owed;
        if (!is_on(sched->parked[i], node))
            continue;
        ret->gpus = xreallocarray(ret->gpus, count + owed->n_gpus, sizeof(*ret->gpus));
        memcpy(ret->gpus + count, owed->gpus, owed->n_gpus * sizeof(*ret->gpus));
        count += owed->n_gpus;
    }
}

void sched_debts_undo(struct sched *sched, struct debts *before)
{
    size_t at = 0;
    for (size_t i = 0; i < sched->n_parked; i++) {
        struct allocation *owed = &sched->parked[i]->owed;
        if (!is_on(sched->parked[i], before->node))
            continue;
        memcpy(owed->gpus, before->gpus + at, owed->n_gpus * sizeof(*owed->gpus));
        at += owed->n_gpus;
    }
    free(before->gpus);
    sched_debts_reckon(sched, before->node);
}

void sched_debts_keep(struct sched *sched, struct debts *before)
{
    free(before->gpus);
    sched_parked_reckon(sched);
}

/* --- other GPUs for them --- */

struct moving {
    struct sched *sched;
    struct cluster_node *node;
    const struct sched_request *request; // NULL: no job is to start
    const struct fit *fit;
    struct sched_run *on[NODE_GPUS_LIMIT]; // what has the whole GPU
    bool is_taken[NODE_GPUS_LIMIT];        // no debts are moved to it
    int64_t return_ms[NODE_GPUS_LIMIT];    // before the move
    uint32_t parked[NODE_GPUS_LIMIT];
    int64_t earliest_ms;             // no debt becomes due before
    const struct sched_run *changed; // its limit would be `limit_ms`; NULL: none changes
    int64_t limit_ms;
};

static void open_moving(struct moving *moving, struct sched *sched, uint32_t node)
{
    *moving = (struct moving){ .sched = sched, .node = &sched->cluster.nodes[node] };
    const struct node_runs *runs = sched_node_runs(sched, node);
    for (size_t i = 0; i < runs->count; i++) {
        const struct allocation *held = &runs->runs[i]->allocation;
        for (size_t k = 0; k < held->n_gpus; k++)
            if (held->gpus[k].node == node && held->gpus[k].slot == 0)
                moving->on[held->gpus[k].gpu] = runs->runs[i];
    }
}

static bool has_ended_by(const struct moving *moving, const struct sched_run *run, int64_t ms)
{
    int64_t limit_ms = run == moving->changed ? moving->limit_ms : run->job->class->key.limit_ms;
    return sched_run_ends_by(moving->sched, run, limit_ms, ms);
}

/* What runs on the GPU leaves before it is due. */
static bool is_left_in_time(const struct moving *moving, uint32_t at)
{
    const struct sched *sched = moving->sched;
    const struct cluster_gpu *gpu = &moving->node->gpus[at];
    const struct sched_run *run = moving->on[at];
    if (run == NULL)
        return cluster_gpu_is_whole(gpu);
    if (has_ended_by(moving, run, gpu->return_ms))
        return true;
    return !run->is_giving_way && run->job->rules != NULL && run->job->rules->ran_ms > 0 &&
           sched_run_can_park(sched, run) && run->allocated_ms + sched_park_slot(sched) <= gpu->return_ms;
}

static bool may_owe(const struct moving *moving, uint32_t at)
{
    const struct cluster_gpu *gpu = &moving->node->gpus[at];
    return !moving->is_taken[at] && gpu->parked <= moving->sched->settings.park_layers &&
           gpu->return_ms >= moving->earliest_ms && is_left_in_time(moving, at);
}

/* Of all GPUs that owe more than before, or earlier. */
static bool may_all_owe(const struct moving *moving)
{
    for (uint32_t i = 0; i < moving->node->n_gpus; i++) {
        const struct cluster_gpu *gpu = &moving->node->gpus[i];
        bool is_more = gpu->parked > moving->parked[i] || gpu->return_ms < moving->return_ms[i];
        if (is_more && !may_owe(moving, i))
            return false;
    }
    return true;
}

static bool is_candidate(const struct moving *moving, const struct parked_job *parked, uint32_t at)
{
    const struct cluster_gpu *gpu = &moving->node->gpus[at];
    return !moving->is_taken[at] && !is_owed_to(parked, at) && cluster_gpu_is_open(moving->node, gpu) &&
           gpu->n_bookings == 0 && sched_parked_may_have(moving->sched, parked, at);
}

/* Moves what `from` owes it to the GPU that owes least to others, of these the one with which it is due last.
 */
static bool move(struct moving *moving, struct parked_job *parked, uint32_t from)
{
    struct alloc_gpu *debt = parked->owed.gpus;
    uint32_t best = from;
    int64_t best_ms = 0;
    int64_t now_ms = moving->sched->now_ms;
    moving->earliest_ms = parked->due_ms < now_ms ? parked->due_ms : now_ms; // it may be due already
    while (debt->gpu != from)
        debt++;
    for (uint32_t i = 0; i < moving->node->n_gpus; i++) {
        moving->return_ms[i] = moving->node->gpus[i].return_ms;
        moving->parked[i] = moving->node->gpus[i].parked;
    }
    for (uint32_t i = 0; i < moving->node->n_gpus; i++) {
        if (!is_candidate(moving, parked, i) || (best != from && moving->parked[i] > moving->parked[best]))
            continue;
        debt->gpu = i;
        sched_debts_reckon(moving->sched, moving->node->position);
        bool is_better = best == from || moving->parked[i] < moving->parked[best] || parked->due_ms > best_ms;
        if (is_better && may_all_owe(moving)) {
            best = i;
            best_ms = parked->due_ms;
        }
    }
    debt->gpu = best;
    sched_debts_reckon(moving->sched, moving->node->position);
    return best != from;
}

/* The one that is due first; NULL: none, or none whose GPUs are not kept for its guest. */
static struct parked_job *first_owed(const struct moving *moving, uint32_t gpu)
{
    struct parked_job *first = NULL;
    for (size_t i = 0; i < moving->sched->n_parked; i++) {
        struct parked_job *parked = moving->sched->parked[i];
        bool may_move = !parked->is_guest_due && !sched_parked_is_held(parked);
        if (may_move && is_on(parked, moving->node->position) && is_owed_to(parked, gpu) &&
            (first == NULL || parked->due_ms < first->due_ms))
            first = parked;
    }
    return first;
}

static bool is_cleared(const struct moving *moving, uint32_t at)
{
    const struct cluster_gpu *gpu = &moving->node->gpus[at];
    if (moving->request == NULL)
        return gpu->return_ms == TIME_NEVER || has_ended_by(moving, moving->on[at], gpu->return_ms);
    return fit_gpu(&moving->sched->cluster, moving->node, gpu, moving->request, moving->fit);
}

/* All or nothing. */
static bool clear_gpu(struct moving *moving, uint32_t gpu)
{
    struct debts before;
    save(moving->sched, moving->node->position, &before);
    moving->is_taken[gpu] = true;
    while (!is_cleared(moving, gpu)) {
        struct parked_job *parked = first_owed(moving, gpu);
        if (parked != NULL && move(moving, parked, gpu))
            continue;
        moving->is_taken[gpu] = false;
        sched_debts_undo(moving->sched, &before);
        return false;
    }
    free(before.gpus);
    return true;
}

/* --- for a job that starts --- */

/* The GPUs that it could have if they were not owed, those that owe least first. */
static uint32_t list_gpus(const struct moving *moving, uint32_t ret[NODE_GPUS_LIMIT])
{
    struct fit fit = *moving->fit;
    uint32_t count = 0;
    fit.ignores_debts = true;
    for (uint32_t i = 0; i < moving->node->n_gpus; i++) {
        const struct cluster_gpu *gpus = moving->node->gpus;
        if (!fit_gpu(&moving->sched->cluster, moving->node, &gpus[i], moving->request, &fit))
            continue;
        uint32_t at = count++;
        for (; at > 0 && gpus[ret[at - 1]].parked > gpus[i].parked; at--)
            ret[at] = ret[at - 1];
        ret[at] = i;
    }
    return count;
}

static bool make_room(struct moving *moving, struct debts *before)
{
    uint32_t gpus[NODE_GPUS_LIMIT], wanted = moving->request->gpus, found = 0;
    uint32_t count = fit_host(moving->node, moving->request, moving->fit) ? list_gpus(moving, gpus) : 0;
    if (count < wanted)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        moving->is_taken[gpus[i]] = is_cleared(moving, gpus[i]);
        found += moving->is_taken[gpus[i]];
    }
    if (found >= wanted)
        return false; // it lacks something else
    save(moving->sched, moving->node->position, before);
    for (uint32_t i = 0; i < count && found < wanted; i++)
        found += !moving->is_taken[gpus[i]] && clear_gpu(moving, gpus[i]);
    if (found < wanted)
        sched_debts_undo(moving->sched, before);
    return found >= wanted;
}

static bool owes(const struct sched *sched, uint32_t node)
{
    for (size_t i = 0; i < sched->n_parked; i++)
        if (is_on(sched->parked[i], node))
            return true;
    return false;
}

bool sched_debts_move(
    struct sched *sched, const struct sched_request *request, const struct fit *fit, struct debts *before)
{
    bool is_plain =
        request->gpus > 0 && request->nodes <= 1 && request->n_picks == 0 && !request_is_shared(request);
    if (sched->n_parked == 0 || fit->give_back_ms != 0 || !is_plain || !sched_parks(sched))
        return false;
    for (uint32_t node = 0; node < sched->n_nodes && node < sched->cluster.n_nodes; node++) {
        struct moving moving;
        if (!owes(sched, node))
            continue;
        open_moving(&moving, sched, node);
        moving.request = request;
        moving.fit = fit;
        if (make_room(&moving, before))
            return true;
    }
    return false;
}

/* --- for a job that runs --- */

static bool cannot_return(const struct moving *moving, uint32_t gpu)
{
    const struct sched_run *run = moving->on[gpu];
    return run != NULL && !run->is_giving_way && !run->job->class->key.is_preemptible &&
           !sched_run_can_park(moving->sched, run);
}

void sched_debts_mend(struct sched *sched)
{
    bool is_left = false;
    for (uint32_t node = 0; node < sched->n_nodes && node < sched->cluster.n_nodes; node++) {
        struct moving moving;
        if (!owes(sched, node))
            continue;
        open_moving(&moving, sched, node);
        for (uint32_t i = 0; i < moving.node->n_gpus; i++)
            is_left |= cannot_return(&moving, i) && !is_cleared(&moving, i) && !clear_gpu(&moving, i);
    }
    sched->are_debts_in_question = is_left;
    sched_parked_reckon(sched);
}

/* The debts are moved as sched_debts_mend() will, and back. */
static bool may_stay(
    struct sched *sched, const struct sched_run *run, uint32_t node, int64_t limit_ms, struct sched_debt *ret)
{
    struct moving moving;
    struct debts before;
    uint32_t at = 0;
    open_moving(&moving, sched, node);
    save(sched, node, &before);
    moving.changed = run;
    moving.limit_ms = limit_ms;
    for (uint32_t i = 0; i < moving.node->n_gpus; i++)
        moving.is_taken[i] = moving.on[i] == run;
    while (at < moving.node->n_gpus &&
           (moving.on[at] != run || is_cleared(&moving, at) || clear_gpu(&moving, at)))
        at++;
    bool may = at == moving.node->n_gpus;
    sched_debts_undo(sched, &before);
    if (may)
        return true;
    *ret = (struct sched_debt){ .gpu = { .node = node, .gpu = at }, .due_ms = TIME_NEVER };
    for (size_t i = 0; i < sched->n_parked; i++) {
        const struct parked_job *parked = sched->parked[i];
        if (is_on(parked, node) && is_owed_to(parked, at) && parked->due_ms < ret->due_ms) {
            ret->job = parked->job->entry.job;
            ret->due_ms = parked->due_ms;
        }
    }
    return false;
}

bool sched_may_stay(
    struct sched *sched, uint64_t id, int64_t limit_ms, bool refuses_park, struct sched_debt *ret)
{
    const struct sched_job *job = sched_find(sched, id);
    const struct sched_run *run = job != NULL ? job->run : NULL;
    if (sched->n_parked == 0 || run == NULL || run->is_giving_way || job->class->key.is_preemptible ||
        (!refuses_park && sched_run_can_park(sched, run)))
        return true;
    for (size_t i = 0; i < run->allocation.n_nodes; i++)
        if (!may_stay(sched, run, run->allocation.nodes[i].node, limit_ms, ret))
            return false;
    return true;
}
