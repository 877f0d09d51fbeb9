/* SPDX-License-Identifier: MIT */
/*
 * Both ways of placing share one walk: nodes in order, in each node the GPUs that would do, in an order of
 * preference. What differs is whether the first node or the one with the least left over is taken, and which
 * GPU of a node comes first.
 */
#include "sched/placement.h"

#include <stdlib.h>

#include "base/memory.h"

static struct cluster_gpu *find_index(const struct cluster_node *node, uint32_t index)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        if (node->gpus[i].is_present && node->gpus[i].index == index)
            return &node->gpus[i];
    return NULL;
}

static bool is_open(const struct cluster_gpu *gpu, const struct sched_request *request)
{
    return !gpu->is_claimed && cluster_gpu_fits(gpu, request);
}

static uint32_t lowest_free_slot(const struct cluster_gpu *gpu)
{
    uint32_t slot = 1;
    while ((gpu->share_slots & (1ULL << slot)) != 0)
        slot++;
    return slot;
}

static void grant(
    struct record_list *grants, const struct cluster_gpu *gpu, const struct sched_request *request)
{
    bool is_shared = request->gpu_mem > 0;
    gpu_grants_add(grants, gpu->index, gpu->uuid, is_shared ? lowest_free_slot(gpu) : 0, request->gpu_mem);
}

/* Memory left over once the request is there; less is better, so that large requests find room elsewhere. */
static uint64_t left_over(const struct cluster_gpu *gpu, const struct sched_request *request)
{
    return gpu->memory_bytes - gpu->memory_booked - request->gpu_mem;
}

static bool place_ids(
    const struct cluster_node *node, const struct sched_request *request, struct record_list *grants)
{
    for (size_t i = 0; i < request->n_ids; i++) {
        const struct cluster_gpu *gpu = find_index(node, request->ids[i]);
        if (gpu == NULL || !is_open(gpu, request)) {
            gpu_grants_clear(grants);
            return false;
        }
        grant(grants, gpu, request);
    }
    return true;
}

static size_t count_open(const struct cluster_node *node, const struct sched_request *request)
{
    size_t open = 0;
    for (size_t i = 0; i < node->n_gpus; i++)
        open += is_open(&node->gpus[i], request);
    return open;
}

static bool is_granted(const struct record_list *grants, const struct cluster_gpu *gpu)
{
    const struct gpu_grant *items = grants->items;
    for (size_t i = 0; i < grants->count; i++)
        if (items[i].index == gpu->index)
            return true;
    return false;
}

static void place_any(const struct cluster_node *node, const struct sched_request *request, bool is_best,
    struct record_list *grants)
{
    while (grants->count < request->gpus) {
        const struct cluster_gpu *best = NULL;
        for (size_t i = 0; i < node->n_gpus; i++) {
            const struct cluster_gpu *gpu = &node->gpus[i];
            if (!is_open(gpu, request) || is_granted(grants, gpu))
                continue;
            bool is_better = best == NULL || (is_best && request->gpu_mem > 0 &&
                                                 left_over(gpu, request) < left_over(best, request));
            if (is_better)
                best = gpu;
        }
        grant(grants, best, request);
    }
}

static bool place(const struct cluster *cluster, const struct sched_request *request, bool is_best,
    struct cluster_node **ret_node, struct record_list *ret_grants)
{
    struct cluster_node *chosen = NULL;
    size_t chosen_open = 0;
    *ret_grants = (struct record_list){ 0 };
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        if (!node->is_up)
            continue;
        if (request->n_ids > 0) {
            if (place_ids(node, request, ret_grants)) {
                *ret_node = node;
                return true;
            }
            continue;
        }
        bool is_cpu_only = request->gpus == 0;
        size_t open = is_cpu_only ? node->cpus - (node->cpu_jobs < node->cpus ? node->cpu_jobs : node->cpus)
                                  : count_open(node, request);
        if (open < request->gpus || open == 0)
            continue;
        if (chosen == NULL || (is_best && open < chosen_open)) {
            chosen = node;
            chosen_open = open;
        }
    }
    if (chosen == NULL)
        return false;
    place_any(chosen, request, is_best, ret_grants);
    *ret_node = chosen;
    return true;
}

static bool place_first_fit(const struct cluster *cluster, const struct sched_request *request,
    struct cluster_node **ret_node, struct record_list *ret_grants)
{
    return place(cluster, request, false, ret_node, ret_grants);
}

static bool place_best_fit(const struct cluster *cluster, const struct sched_request *request,
    struct cluster_node **ret_node, struct record_list *ret_grants)
{
    return place(cluster, request, true, ret_node, ret_grants);
}

const struct placement placement_first_fit = { .name = "first-fit", .place = place_first_fit };
const struct placement placement_best_fit = { .name = "best-fit", .place = place_best_fit };

/* A GPU that could serve the request once its shares have ended. */
static bool is_claimable(
    const struct cluster_gpu *gpu, const struct sched_request *request, bool must_be_empty)
{
    return gpu->is_present && !gpu->is_claimed && !gpu->is_exclusive &&
           gpu->memory_bytes >= request->gpu_mem && (!must_be_empty || cluster_gpu_is_empty(gpu));
}

static size_t claim_ids(struct cluster_node *node, const struct sched_request *request)
{
    size_t claimed = 0;
    for (size_t i = 0; i < request->n_ids; i++) {
        struct cluster_gpu *gpu = find_index(node, request->ids[i]);
        if (gpu == NULL || !is_claimable(gpu, request, false))
            continue;
        gpu->is_claimed = true;
        claimed++;
    }
    return claimed;
}

static size_t claim_any(struct cluster_node *node, const struct sched_request *request)
{
    size_t claimed = 0;
    for (int must_be_empty = 1; must_be_empty >= 0; must_be_empty--) {
        for (size_t i = 0; i < node->n_gpus && claimed < request->gpus; i++) {
            if (!is_claimable(&node->gpus[i], request, must_be_empty))
                continue;
            node->gpus[i].is_claimed = true;
            claimed++;
        }
    }
    return claimed;
}

static size_t count_claimable(const struct cluster_node *node, const struct sched_request *request)
{
    size_t claimable = 0;
    for (size_t i = 0; i < node->n_gpus; i++)
        claimable += is_claimable(&node->gpus[i], request, false);
    return claimable;
}

size_t placement_claim(struct cluster *cluster, const struct sched_request *request)
{
    struct cluster_node *most = NULL;
    size_t most_claimable = 0;
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        if (!node->is_up)
            continue;
        size_t claimable = count_claimable(node, request);
        if (claimable > most_claimable) {
            most = node;
            most_claimable = claimable;
        }
    }
    if (most == NULL || request->gpus == 0)
        return 0;
    return request->n_ids > 0 ? claim_ids(most, request) : claim_any(most, request);
}
