/* SPDX-License-Identifier: MIT */
/* The node with the least left over is found by querying the index for nodes with exactly that many free
 * GPUs, then one more, and so on. */
#include "sched/placement/placement_search.h"

#include <string.h>

/* A job on several nodes takes whole nodes and a part of one more; with unequal nodes the number is
 * unknown. */
static uint32_t least_part(const struct cluster *cluster, const struct sched_request *request)
{
    bool is_alike = request->n_picks == 0 && cluster_all_suit(cluster, request);
    uint32_t width = is_alike ? cluster_width(cluster) : 0;
    if (width == 0)
        return 1;
    return request->gpus % width > 0 ? request->gpus % width : width;
}

void request_need(const struct cluster *cluster, const struct sched_request *request, struct node_need *ret)
{
    uint64_t models = request->model != NULL ? cluster_models(cluster, request) : 0, work = 0;
    *ret = (struct node_need){ .cpu_milli = request->cpu_milli, .memory = request->memory, .models = models };
    if (request->adopted_pid != 0 && request->n_picks > 0)
        return; // its own process may be the only one that closes them: each GPU must be checked
    if (request->model != NULL && models == 0)
        ret->whole = UINT32_MAX; // no node has it, and 0 would mean any
    else if (request_is_shared(request)) {
        ret->share = request->share > 0 ? request->share : 1;
        ret->part = request->gpu_mem == 0 ? request->share : 0;
        ret->gpu_mem = request->gpu_mem;
    } else if (request->nodes > 0)
        ret->whole = request->gpus_per_node > 0 ? request->gpus_per_node : request->gpus / request->nodes;
    else if (request->gpus > 1 && (request_may_span(request) || request->n_picks > 0)) {
        bool is_spread = request->n_picks > 0 ? request_may_span(request)
                                              : !search_one_node_is_enough(cluster, request, &work);
        ret->whole = is_spread ? least_part(cluster, request) : request->gpus;
    } else
        ret->whole = request->gpus;
}

bool search_is_used(const struct allocation *found, uint32_t node)
{
    for (size_t i = 0; i < found->n_nodes; i++)
        if (found->nodes[i].node == node)
            return true;
    return false;
}

bool search_one_node_is_enough(
    const struct cluster *cluster, const struct sched_request *request, uint64_t *work)
{
    bool is_plain = cluster_all_suit(cluster, request) && request->gpu_mem == 0;
    struct node_need need = { .gpus = request->gpus,
        .models = request->model != NULL ? cluster_models(cluster, request) : 0 };
    int64_t at = -1;
    while ((at = node_index_find(cluster->index, &need, (uint32_t)(at + 1), work)) >= 0) {
        const struct cluster_node *node = &cluster->nodes[at];
        if (cluster_host_suffices(node, request) &&
            (is_plain || cluster_count_suitable(cluster, node, request, request->gpus) >= request->gpus))
            return true;
    }
    return false;
}

void search_init(struct search *search, const struct cluster *cluster, const struct sched_request *request,
    const struct fit *fit)
{
    *search = (struct search){ .cluster = cluster, .request = request, .fit = fit };
    request_need(cluster, request, &search->need);
}

static bool is_good(const struct search *search, int64_t at, uint32_t count, const struct allocation *found)
{
    const struct cluster_node *node = &search->cluster->nodes[at];
    return !search_is_used(found, (uint32_t)at) && fit_host(node, search->request, search->fit) &&
           fit_count(search->cluster, node, search->request, search->fit, count) >= count;
}

static int64_t best_share(
    struct search *search, uint32_t count, const struct allocation *found, uint64_t *work)
{
    int64_t at = (int64_t)search->from - 1;
    while ((at = node_index_find(search->cluster->index, &search->need, (uint32_t)(at + 1), work)) >= 0)
        if (is_good(search, at, count, found)) {
            search->from = (uint32_t)at + 1;
            return at;
        }
    return -1;
}

int64_t search_best(struct search *search, uint32_t count, const struct allocation *found, uint64_t *work)
{
    if (search->count != count) {
        search->count = search->whole = count;
        search->from = 0;
    }
    if (request_is_shared(search->request))
        return best_share(search, count, found, work);
    search->need.whole = search->need.whole == UINT32_MAX ? UINT32_MAX : count;
    uint32_t most = node_index_most_whole(search->cluster->index);
    for (; search->whole <= most; search->whole++, search->from = 0) {
        int64_t at = (int64_t)search->from - 1;
        while ((at = node_index_find_exact(
                    search->cluster->index, &search->need, search->whole, (uint32_t)(at + 1), work)) >= 0)
            if (is_good(search, at, count, found)) {
                search->from = (uint32_t)at + 1;
                return at;
            }
    }
    return -1;
}
