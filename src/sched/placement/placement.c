/* SPDX-License-Identifier: MIT */
/*
 * The parts that are common to all placements: named GPUs, jobs on several nodes, jobs without GPUs. Nodes
 * are found through the index and then checked completely, because the index does not include holds,
 * reservations and allowed sets.
 */
#include "sched/placement/placement.h"

#include <string.h>

#include "base/memory.h"
#include "sched/placement/placement_search.h"

const struct placement *const placements[] = { &placement_fgd, &placement_fgd_plain, &placement_best_fit,
    &placement_best_fit_plain, &placement_first_fit, &placement_consolidate, &placement_spread, NULL };

const struct placement *placement_find(const char *name)
{
    for (size_t i = 0; placements[i] != NULL; i++)
        if (strcmp(placements[i]->name, name) == 0)
            return placements[i];
    return NULL;
}

/* --- named GPUs --- */

static bool take_picks(const struct cluster *cluster, const struct cluster_node *unnamed,
    const struct sched_request *request, const struct fit *fit, struct allocation *found)
{
    for (size_t i = 0; i < request->n_picks; i++) {
        const char *name = request->picks[i].node;
        const struct cluster_node *node = name != NULL ? cluster_find(cluster, name) : unnamed;
        if (node == NULL || !fit_host(node, request, fit))
            return false;
        const struct cluster_gpu *gpu = cluster_find_index(node, request->picks[i].index);
        if (gpu == NULL || !fit_gpu(cluster, node, gpu, request, fit))
            return false;
        fit_take_pick(node, (uint32_t)(gpu - node->gpus), request, found);
    }
    return true;
}

static bool choose_picks(const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *found, uint64_t *work)
{
    for (size_t i = 0; i < request->n_picks; i++)
        if (request->picks[i].node != NULL)
            return take_picks(cluster, cluster_find(cluster, request->picks[i].node), request, fit, found);
    struct node_need need;
    request_need(cluster, request, &need);
    for (int64_t at = -1; (at = node_index_find(cluster->index, &need, (uint32_t)(at + 1), work)) >= 0;) {
        allocation_clear(found);
        if (take_picks(cluster, &cluster->nodes[at], request, fit, found))
            return true;
    }
    return false;
}

/* --- without GPUs: on nodes without any, else where the GPUs are busiest, which wastes the least --- */

static bool choose_cpu(const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *found, uint64_t *work)
{
    struct node_need need;
    request_need(cluster, request, &need);
    uint32_t most = node_index_most_whole(cluster->index);
    for (uint64_t level = 0; level <= (uint64_t)most + 1; level++) {
        uint32_t whole = level == 0 ? WHOLE_NO_GPUS : (uint32_t)level - 1;
        int64_t at = -1;
        while ((at = node_index_find_exact(cluster->index, &need, whole, (uint32_t)(at + 1), work)) >= 0) {
            const struct cluster_node *node = &cluster->nodes[at];
            if (search_is_used(found, (uint32_t)at) || !fit_host(node, request, fit))
                continue;
            fit_take(cluster, node, request, fit, 0, -1, found);
            return true;
        }
    }
    return false;
}

/* --- several nodes --- */

static bool take_best(struct search *search, const struct sched_request *request, const struct fit *fit,
    uint32_t count, struct allocation *found, uint64_t *work)
{
    int64_t at = search_best(search, count, found, work);
    if (at < 0)
        return false;
    fit_take(search->cluster, &search->cluster->nodes[at], request, fit, count, -1, found);
    return true;
}

/* Exactly request->nodes nodes, each with its part, those with least left over. */
static bool choose_nodes(const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *found, uint64_t *work)
{
    struct search search;
    search_init(&search, cluster, request, fit);
    for (uint32_t i = 0; i < request->nodes; i++) {
        uint32_t count = request->gpus_per_node > 0 ? request->gpus_per_node : request->gpus / request->nodes;
        count += request->gpus_per_node == 0 && i < request->gpus % request->nodes;
        bool is_placed = count > 0 ? take_best(&search, request, fit, count, found, work)
                                   : choose_cpu(cluster, request, fit, found, work);
        if (!is_placed)
            return false;
    }
    return true;
}

/* The number of nodes by their number of GPUs that could serve the request, allocated or not. */
static void count_widths(const struct cluster *cluster, const struct sched_request *request,
    uint32_t widths[NODE_GPUS_LIMIT + 1], uint64_t *work)
{
    bool is_plain = cluster_all_suit(cluster, request) && request->gpu_mem == 0;
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        uint32_t open = node_index_offer(cluster->index, (uint32_t)i)->open;
        if (open == 0 || !cluster_host_suffices(node, request))
            continue;
        uint32_t width = is_plain ? open : 0;
        for (size_t k = 0; !is_plain && k < node->n_gpus; k++)
            width += cluster_gpu_is_open(node, &node->gpus[k]) &&
                     cluster_gpu_suits(cluster, &node->gpus[k], request) &&
                     node->gpus[k].memory_bytes >= request->gpu_mem;
        widths[width < NODE_GPUS_LIMIT ? width : NODE_GPUS_LIMIT]++;
    }
    *work += cluster->n_nodes / 8 + 1;
}

/*
 * Uses as few nodes as the idle cluster would need: the widest nodes completely, as many as exist and are
 * needed, then the next width, and the rest where it leaves least over. If these are not free the job waits:
 * running on more nodes would slow it down throughout.
 */
static bool choose_wide(const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *found, uint64_t *work)
{
    uint32_t widths[NODE_GPUS_LIMIT + 1] = { 0 }, left = request->gpus;
    struct search search;
    uint32_t same = cluster_all_suit(cluster, request) ? cluster_width(cluster) : 0;
    if (same > 0 && request->gpus >= same && node_index_most_whole(cluster->index) < same)
        return false; // no whole node is free
    search_init(&search, cluster, request, fit);
    count_widths(cluster, request, widths, work);
    for (uint32_t width = NODE_GPUS_LIMIT; width > 0 && left > 0; width--) {
        uint32_t full = left / width < widths[width] ? left / width : widths[width];
        for (uint32_t i = 0; i < full; i++)
            if (!take_best(&search, request, fit, width, found, work))
                return false;
        left -= full * width;
        if (left > 0 && left < width && widths[width] > full)
            return take_best(&search, request, fit, left, found, work);
    }
    return left == 0;
}

/* On the smallest GPUs that have the memory: a job that fits on a MIG instance leaves whole GPUs to jobs that
 * need them. */
static bool choose_by_memory(const struct placement *placement, void *state, const struct cluster *cluster,
    const struct sched_request *request, const struct fit *fit, struct allocation *found, uint64_t *work)
{
    struct fit small = *fit;
    for (size_t i = 0; i < cluster->n_gpu_sizes; i++) {
        small.gpu_bytes_max = cluster->gpu_sizes[i];
        if (small.gpu_bytes_max >= request->gpu_mem &&
            placement->place(state, cluster, request, &small, found, work))
            return true;
    }
    return false;
}

static bool choose(const struct placement *placement, void *state, const struct cluster *cluster,
    const struct sched_request *request, const struct fit *fit, struct allocation *found, uint64_t *work)
{
    if (request->n_picks > 0)
        return choose_picks(cluster, request, fit, found, work);
    if (request->nodes > 1)
        return choose_nodes(cluster, request, fit, found, work);
    if (request->gpus == 0)
        return (placement->takes_cpu_jobs && placement->place(state, cluster, request, fit, found, work)) ||
               choose_cpu(cluster, request, fit, found, work);
    if (request->gpus > 1 && request->nodes == 0 && !search_one_node_is_enough(cluster, request, work))
        return choose_wide(cluster, request, fit, found, work);
    if (request->gpu_mem > 0 && cluster->n_gpu_sizes > 1)
        return choose_by_memory(placement, state, cluster, request, fit, found, work);
    return placement->place(state, cluster, request, fit, found, work);
}

bool placement_choose(const struct placement *placement, void *state, const struct cluster *cluster,
    const struct sched_request *request, const struct fit *fit, struct allocation *ret, uint64_t *work)
{
    struct allocation found = { 0 };
    if (!choose(placement, state, cluster, request, fit, &found, work)) {
        allocation_clear(&found);
        return false;
    }
    *ret = found;
    return true;
}
