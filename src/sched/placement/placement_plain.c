/* SPDX-License-Identifier: MIT */
/*
 * The two simple placements. Best fit makes the choices of the reference simulators' `consolidate`: of the
 * nodes with enough space, the one with the fewest free GPUs, the lowest position on ties; wide jobs are
 * placed in the same way by all.
 */
#include "sched/placement/placement.h"

#include "sched/placement/placement_search.h"

static bool place_first_fit(void *state, const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *ret, uint64_t *work)
{
    struct node_need need;
    request_need(cluster, request, &need);
    int64_t at = -1;
    while ((at = node_index_find(cluster->index, &need, (uint32_t)(at + 1), work)) >= 0) {
        const struct cluster_node *node = &cluster->nodes[at];
        if (!fit_host(node, request, fit) ||
            fit_count(cluster, node, request, fit, request->gpus) < request->gpus)
            continue;
        fit_take(cluster, node, request, fit, request->gpus, -1, ret);
        return true;
    }
    return false;
}

#define DISTURBED (1ULL << 62) // more than any GPU has left

/* Thousandths, or bytes if no thousandths are requested, that the GPU would have left; GPUs with external
 * processes come last. */
static uint64_t left_over(const struct cluster_gpu *gpu, const struct sched_request *request)
{
    uint64_t left = request->share > 0 ? SHARE_WHOLE - gpu->share_booked - request->share
                                       : cluster_gpu_memory_left(gpu) - request->gpu_mem;
    return gpu->has_external ? left | DISTURBED : left;
}

static bool place_share(const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *ret, uint64_t *work)
{
    struct node_need need;
    uint64_t least = UINT64_MAX;
    int64_t best = -1, best_gpu = -1, at = -1;
    request_need(cluster, request, &need);
    while (least > 0 && (at = node_index_find(cluster->index, &need, (uint32_t)(at + 1), work)) >= 0) {
        const struct cluster_node *node = &cluster->nodes[at];
        if (!fit_host(node, request, fit) ||
            fit_count(cluster, node, request, fit, request->gpus) < request->gpus)
            continue;
        for (size_t i = 0; i < node->n_gpus; i++) {
            const struct cluster_gpu *gpu = &node->gpus[i];
            if (!fit_gpu(cluster, node, gpu, request, fit) || left_over(gpu, request) >= least)
                continue;
            least = left_over(gpu, request);
            best = at;
            best_gpu = (int64_t)i;
        }
    }
    if (best < 0)
        return false;
    fit_take(cluster, &cluster->nodes[best], request, fit, request->gpus, best_gpu, ret);
    return true;
}

static bool place_best_fit(void *state, const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *ret, uint64_t *work)
{
    if (request_is_shared(request))
        return place_share(cluster, request, fit, ret, work);
    struct search search;
    search_init(&search, cluster, request, fit);
    int64_t at = search_best(&search, request->gpus, ret, work);
    if (at < 0)
        return false;
    fit_take(cluster, &cluster->nodes[at], request, fit, request->gpus, -1, ret);
    return true;
}

const struct placement placement_first_fit = { .name = "first-fit", .place = place_first_fit };
const struct placement placement_best_fit = { .name = "best-fit", .place = place_best_fit };
const struct placement placement_consolidate = { .name = "consolidate", .place = place_best_fit };
