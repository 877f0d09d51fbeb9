/* SPDX-License-Identifier: MIT */
/*
 * Selects the job that may begin on the CPU while its future GPUs are still used. The first jobs of the queue
 * are placed in order of rank, each on the suitable GPUs of one node that are free soonest and not taken by a
 * job before it. Jobs that may not start early are placed, too, so no job begins before the jobs ahead of it
 * have their GPUs. No other decision of the scheduler depends on this.
 */

#include "base/memory.h"
#include "sched/sched_private.h"

#define JOBS_MAX  32U // that are placed
#define TAKEN_MAX 256U

struct early_search {
    const struct sched *sched;
    const struct sched_early_rules *rules;
    int64_t now_ms;
    struct alloc_gpu taken[TAKEN_MAX];
    size_t n_taken;
    bool is_full; // more GPUs are taken than the list can hold
};

static void take(struct early_search *search, uint32_t node, uint32_t gpu)
{
    search->is_full = search->n_taken == TAKEN_MAX;
    if (!search->is_full)
        search->taken[search->n_taken++] = (struct alloc_gpu){ .node = node, .gpu = gpu };
}

static bool is_taken(const struct early_search *search, uint32_t node, uint32_t gpu)
{
    for (size_t i = 0; i < search->n_taken; i++)
        if (search->taken[i].node == node && search->taken[i].gpu == gpu)
            return true;
    return false;
}

/* The time at which the jobs on each GPU have probably left it; jobs that are being ended leave it now. */
static void find_times(const struct early_search *search, uint32_t node, int64_t *free_ms)
{
    const struct sched *sched = search->sched;
    const struct cluster_node *where = &sched->cluster.nodes[node];
    for (size_t i = 0; i < where->n_gpus; i++)
        free_ms[i] = cluster_gpu_is_open(where, &where->gpus[i]) ? 0 : TIME_NEVER;
    const struct node_runs *runs = &sched->nodes[node];
    for (size_t i = 0; i < runs->count; i++) {
        const struct sched_run *run = runs->runs[i];
        bool is_ending =
            run->is_giving_way || search->rules->is_ending(search->rules->arg, run->job->entry.job);
        int64_t ends_ms = is_ending ? search->now_ms : run->expected_end_ms;
        for (size_t k = 0; k < run->allocation.n_gpus; k++) {
            const struct alloc_gpu *gpu = &run->allocation.gpus[k];
            if (gpu->node == node && free_ms[gpu->gpu] < ends_ms)
                free_ms[gpu->gpu] = ends_ms;
        }
    }
}

/* Could the job have the GPU if it were empty? */
static bool suits(const struct sched *sched, const struct cluster_node *node, const struct cluster_gpu *gpu,
    const struct sched_request *request, const struct fit *fit)
{
    struct cluster_gpu left = *gpu;
    left.is_exclusive = false;
    left.share_slots = 0;
    left.share_booked = 0;
    left.memory_booked = 0;
    return fit_gpu(&sched->cluster, node, &left, request, fit);
}

/* The GPUs of the node that are free soonest, in order of their positions; TIME_NEVER: too few. */
static int64_t pick(const struct early_search *search, uint32_t node, const struct sched_request *request,
    const struct fit *fit, uint32_t *picked)
{
    const struct cluster_node *where = &search->sched->cluster.nodes[node];
    int64_t free_ms[NODE_GPUS_LIMIT], last_ms = 0;
    bool is_picked[NODE_GPUS_LIMIT] = { false };
    if (node >= search->sched->n_nodes || where->n_gpus < request->gpus || !where->is_up ||
        where->is_drained || !cluster_node_admits(where, request))
        return TIME_NEVER;
    find_times(search, node, free_ms);
    for (uint32_t n = 0; n < request->gpus; n++) {
        size_t best = where->n_gpus;
        for (uint32_t i = 0; i < where->n_gpus; i++)
            if (!is_picked[i] && free_ms[i] < TIME_NEVER && !is_taken(search, node, i) &&
                suits(search->sched, where, &where->gpus[i], request, fit) &&
                (best == where->n_gpus || free_ms[i] < free_ms[best]))
                best = i;
        if (best == where->n_gpus)
            return TIME_NEVER;
        is_picked[best] = true;
        last_ms = free_ms[best];
    }
    for (uint32_t i = 0, n = 0; i < where->n_gpus; i++)
        if (is_picked[i])
            picked[n++] = i;
    return last_ms;
}

/* The node that has them soonest. Its GPUs are marked as taken. */
static int64_t find_place(struct early_search *search, const struct sched_request *request,
    const struct fit *fit, struct allocation *ret)
{
    const struct cluster *cluster = &search->sched->cluster;
    uint32_t picked[NODE_GPUS_LIMIT], best[NODE_GPUS_LIMIT], best_node = 0;
    int64_t best_ms = TIME_NEVER;
    for (uint32_t node = 0; node < cluster->n_nodes; node++) {
        int64_t at_ms = pick(search, node, request, fit, picked);
        if (at_ms >= best_ms)
            continue;
        best_ms = at_ms;
        best_node = node;
        for (uint32_t i = 0; i < request->gpus; i++)
            best[i] = picked[i];
    }
    *ret = (struct allocation){ 0 };
    if (best_ms == TIME_NEVER)
        return TIME_NEVER;
    ret->gpus = xcalloc(request->gpus, sizeof(*ret->gpus));
    for (uint32_t i = 0; i < request->gpus; i++) {
        ret->gpus[ret->n_gpus++] = (struct alloc_gpu){ .node = best_node, .gpu = best[i] };
        take(search, best_node, best[i]);
    }
    fit_add_host(&cluster->nodes[best_node], request, ret);
    return best_ms;
}

/* Its CPUs and host memory are free, not counting holds. */
static bool has_host_room(
    const struct sched *sched, uint32_t node, const struct sched_request *request, const struct fit *fit)
{
    struct cluster_node now = sched->cluster.nodes[node];
    now.hold_from_ms = TIME_NEVER;
    return fit_host(&now, request, fit);
}

static bool is_plain(const struct sched_job *job, const struct sched_request *request)
{
    return (job->rules == NULL || !job->rules->is_array) && request->gpus > 0 && request->nodes <= 1 &&
           request->n_picks == 0 && request->adopted_pid == 0 && !request->is_exclusive &&
           !request_is_shared(request);
}

/* True: it may start now, on `ret`. */
static bool consider(struct early_search *search, const struct queue_class *class, uint64_t id,
    struct sched_early *ret, int64_t *ret_again_ms)
{
    const struct sched *sched = search->sched;
    const struct sched_request *request = &class->key.request;
    const struct sched_job *job = sched_find(sched, id);
    uint64_t reservations[16];
    struct fit fit;
    if (request->gpus == 0 || request->nodes > 1 || request->n_picks > 0)
        return false; // it needs no GPUs, or those that it waits for are taken already
    sched_fit_of(sched, class, reservations, 16, &fit);
    ret->job = id;
    ret->free_ms = find_place(search, request, &fit, &ret->place);
    if (ret->free_ms == TIME_NEVER)
        return false;
    bool may_start = ret->free_ms > 0 && is_plain(job, request) && job->blockers == 0 &&
                     search->rules->may_start(search->rules->arg, id, ret->place.nodes[0].node);
    int64_t from_ms = ret->free_ms - search->rules->within_ms;
    if (may_start && from_ms <= search->now_ms &&
        has_host_room(sched, ret->place.nodes[0].node, request, &fit))
        return true;
    if (may_start && from_ms > search->now_ms && from_ms < *ret_again_ms)
        *ret_again_ms = from_ms;
    allocation_clear(&ret->place);
    return false;
}

bool sched_find_early(const struct sched *sched, int64_t now_ms, const struct sched_early_rules *rules,
    struct sched_early *ret, int64_t *ret_again_ms)
{
    struct early_search search = { .sched = sched, .rules = rules, .now_ms = now_ms };
    size_t n_jobs = 0;
    *ret_again_ms = TIME_NEVER;
    for (size_t i = 0; i < rules->n_awaited; i++)
        take(&search, rules->awaited[i].node, rules->awaited[i].gpu);
    for (const struct queue_class *class = queue_first(&sched->queue); class != NULL;
         class = queue_next(class))
        for (const struct queue_entry *entry = class->first; entry != NULL; entry = entry->after) {
            if (n_jobs++ == JOBS_MAX || search.is_full)
                return false;
            if (consider(&search, class, entry->job, ret, ret_again_ms))
                return true;
        }
    return false;
}
