/* SPDX-License-Identifier: MIT */
/*
 * Spread: whole GPUs are taken from the node with the most of them free, the lowest position on ties, so that
 * jobs do not disturb each other while there is space. It leaves no node empty for large jobs. Shares are
 * packed as by best fit: two half-used GPUs are one fewer to allocate.
 */
#include "sched/placement/placement.h"

static bool place_spread(void *state, const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit, struct allocation *ret, uint64_t *work)
{
    struct node_need need;
    if (request_is_shared(request))
        return placement_best_fit.place(state, cluster, request, fit, ret, work);
    request_need(cluster, request, &need);
    for (uint32_t whole = node_index_most_whole(cluster->index); whole >= request->gpus; whole--) {
        int64_t at = -1;
        while ((at = node_index_find_exact(cluster->index, &need, whole, (uint32_t)(at + 1), work)) >= 0) {
            const struct cluster_node *node = &cluster->nodes[at];
            if (!fit_host(node, request, fit) ||
                fit_count(cluster, node, request, fit, request->gpus) < request->gpus)
                continue;
            fit_take(cluster, node, request, fit, request->gpus, -1, ret);
            return true;
        }
    }
    return false;
}

const struct placement placement_spread = { .name = "spread", .place = place_spread };
