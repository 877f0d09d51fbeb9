/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that one node may allocate to a request now. A GPU that is not allocated may be excluded for four
 * reasons: it is held for blocked jobs of the plan (excludes jobs expected to end after the hold begins), it
 * is reserved (excludes jobs whose certain end is after its beginning), it is owed to a parked job (the same,
 * unless the job can give it back), or it is closed or used by external processes.
 */
#include "sched/placement/placement.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/cluster_change.h"
#include "sched/placement/topology.h"

uint64_t fit_share_memory(const struct cluster_gpu *gpu, const struct sched_request *request)
{
    if (request->gpu_mem > 0)
        return request->gpu_mem;
    return gpu->memory_bytes / SHARE_WHOLE * request->share +
           gpu->memory_bytes % SHARE_WHOLE * request->share / SHARE_WHOLE;
}

static bool is_held(int64_t hold_from_ms, uint64_t hold_class, const struct fit *fit)
{
    bool is_own = hold_class != 0 && hold_class == fit->class_number;
    return !is_own && (hold_from_ms < fit->end_ms || hold_from_ms <= fit->now_ms);
}

bool fit_may_use(const struct fit *fit, uint64_t reservation)
{
    for (size_t i = 0; i < fit->n_reservations; i++)
        if (fit->reservations[i] == reservation)
            return true;
    return false;
}

static bool is_reserved(const struct cluster_gpu *gpu, const struct fit *fit)
{
    for (size_t i = 0; i < gpu->n_bookings; i++) {
        const struct cluster_booking *booking = &gpu->bookings[i];
        if (booking->until_ms <= fit->now_ms || fit_may_use(fit, booking->reservation))
            continue;
        if (booking->from_ms <= fit->now_ms || (fit->limit_ms > booking->from_ms && !fit->may_give_way))
            return true;
    }
    return false;
}

/* Jobs parked from the GPU return in time: this job has ended by then, or returns the GPU. */
static bool is_owed(const struct cluster_gpu *gpu, const struct fit *fit)
{
    if (fit->ignores_debts || gpu->return_ms == TIME_NEVER || fit->limit_ms <= gpu->return_ms)
        return false;
    return fit->give_back_ms == 0 || fit->give_back_ms > gpu->return_ms || gpu->parked > fit->parked_max;
}

static bool share_fits(
    const struct cluster_gpu *gpu, const struct sched_request *request, const struct fit *fit)
{
    if (!cluster_gpu_takes_share(gpu))
        return false;
    bool is_kept = is_held(gpu->hold_from_ms, gpu->hold_class, fit);
    /* A request by memory alone books no share, but the GPU must have some left. */
    uint32_t share = gpu->share_booked + (request->share > 0 ? request->share : 1);
    if (share + (is_kept ? gpu->hold_share : 0) > SHARE_WHOLE)
        return false;
    if (gpu->memory_bytes == 0)
        return request->gpu_mem == 0;
    uint64_t left = cluster_gpu_memory_left(gpu), held = is_kept ? gpu->hold_memory : 0;
    return held <= left && fit_share_memory(gpu, request) <= left - held;
}

static bool gpu_fits(const struct cluster *cluster, const struct cluster_node *node,
    const struct cluster_gpu *gpu, const struct sched_request *request, bool is_shared, const struct fit *fit)
{
    struct cluster_gpu own;
    if (cluster_gpu_is_adoptee(gpu, request)) {
        own = *gpu;
        own.closed &= ~(uint32_t)DEVICE_EXTERNAL;
        own.memory_external = 0;
        gpu = &own;
    }
    if (fit->gpu_bytes_max > 0 && gpu->memory_bytes > fit->gpu_bytes_max)
        return false;
    if (!cluster_gpu_is_open(node, gpu) || (!is_shared && !cluster_gpu_is_whole(gpu)) ||
        !cluster_gpu_suits(cluster, gpu, request) || is_reserved(gpu, fit) || is_owed(gpu, fit))
        return false;
    return is_shared ? share_fits(gpu, request, fit) : !is_held(gpu->hold_from_ms, gpu->hold_class, fit);
}

bool fit_gpu(const struct cluster *cluster, const struct cluster_node *node, const struct cluster_gpu *gpu,
    const struct sched_request *request, const struct fit *fit)
{
    return gpu_fits(cluster, node, gpu, request, request_is_shared(request), fit);
}

/* The limit of simultaneous starts is for jobs without GPUs on one node: only they come by the thousand.
 */
static bool must_wait_for_starts(
    const struct cluster_node *node, const struct sched_request *request, const struct fit *fit)
{
    return fit->counts_starts && request->gpus == 0 && request->nodes <= 1 && cluster_node_is_starting(node);
}

bool fit_host(const struct cluster_node *node, const struct sched_request *request, const struct fit *fit)
{
    if (!node->is_up || node->is_drained || node->is_exclusive || cluster_node_is_full(node))
        return false;
    if (must_wait_for_starts(node, request, fit))
        return false;
    if (!cluster_node_admits(node, request) || (request->is_exclusive && node->jobs > 0))
        return false;
    bool is_kept = is_held(node->hold_from_ms, node->hold_class, fit);
    if (is_kept && (node->hold_is_exclusive || request->is_exclusive))
        return false;
    if (is_kept && node->jobs_max > 0 && node->jobs + node->hold_jobs >= node->jobs_max)
        return false;
    uint64_t cpu = (uint64_t)node->cpu_booked + (is_kept ? node->hold_cpu_milli : 0) + request->cpu_milli;
    if (request->cpu_milli > 0 && cpu > node->cpu_milli)
        return false;
    uint64_t memory = node->memory_booked + (is_kept ? node->hold_memory : 0);
    return request->memory == 0 || node->memory == 0 ||
           (memory <= node->memory && request->memory <= node->memory - memory);
}

uint32_t fit_count(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, const struct fit *fit, uint32_t enough)
{
    bool is_shared = request_is_shared(request);
    uint32_t count = 0;
    for (size_t i = 0; i < node->n_gpus && count < enough; i++)
        count += gpu_fits(cluster, node, &node->gpus[i], request, is_shared, fit);
    return count;
}

/* --- taking --- */

static uint32_t lowest_free_slot(const struct cluster_gpu *gpu)
{
    return (uint32_t)__builtin_ctzll(~(gpu->share_slots | 1));
}

static void add_gpu(const struct cluster_node *node, uint32_t at, const struct sched_request *request,
    struct allocation *allocation)
{
    const struct cluster_gpu *gpu = &node->gpus[at];
    struct alloc_gpu *taken = &allocation->gpus[allocation->n_gpus++];
    *taken = (struct alloc_gpu){ .node = node->position, .gpu = at };
    if (request_is_shared(request)) {
        taken->slot = lowest_free_slot(gpu);
        taken->share = request->share;
        taken->memory = fit_share_memory(gpu, request);
    }
}

void fit_add_host(
    const struct cluster_node *node, const struct sched_request *request, struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_nodes; i++)
        if (allocation->nodes[i].node == node->position)
            return;
    size_t count = allocation->n_nodes++;
    allocation->nodes = xreallocarray(allocation->nodes, count + 1, sizeof(*allocation->nodes));
    allocation->nodes[count] = (struct alloc_node){
        .node = node->position,
        .cpu_milli = request->cpu_milli,
        .memory = request->memory,
        .is_exclusive = request->is_exclusive,
    };
}

/* Less is left over on `a`. */
static bool is_tighter(
    const struct cluster_gpu *a, const struct cluster_gpu *b, const struct sched_request *request)
{
    uint64_t memory_a = cluster_gpu_memory_left(a), memory_b = cluster_gpu_memory_left(b);
    if (a->has_external != b->has_external)
        return b->has_external;
    if (request->share > 0 && a->share_booked != b->share_booked)
        return a->share_booked > b->share_booked;
    if (memory_a != memory_b)
        return memory_a < memory_b;
    return a->share_booked > b->share_booked;
}

/* Brings the `count` tightest of `n` to the front; the order of the others does not matter. */
static void tightest_first(const struct cluster_node *node, const struct sched_request *request,
    int64_t first, uint32_t *at, uint32_t n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t best = i;
        for (uint32_t k = i + 1; k < n && (int64_t)at[best] != first; k++)
            if ((int64_t)at[k] == first || is_tighter(&node->gpus[at[k]], &node->gpus[at[best]], request))
                best = k;
        uint32_t chosen = at[best];
        memmove(at + i + 1, at + i, (best - i) * sizeof(*at));
        at[i] = chosen;
    }
}

/* A job that ends before these GPUs are needed takes held ones, and leaves the others to longer jobs. */
static uint32_t held_first(const struct cluster_node *node, uint32_t *at, uint32_t n, uint32_t count)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < n; i++)
        held += node->gpus[at[i]].hold_from_ms < TIME_NEVER;
    if (held < count || held == n)
        return n;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (node->gpus[at[i]].hold_from_ms < TIME_NEVER)
            at[kept++] = at[i];
    return kept;
}

/* GPUs without external processes come before those with small ones. */
static uint32_t undisturbed_first(const struct cluster_node *node, uint32_t *at, uint32_t n, uint32_t count)
{
    uint32_t undisturbed = 0;
    for (uint32_t i = 0; i < n; i++)
        undisturbed += !node->gpus[at[i]].has_external;
    if (undisturbed < count || undisturbed == n)
        return n;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!node->gpus[at[i]].has_external)
            at[kept++] = at[i];
    return kept;
}

void fit_take(const struct cluster *cluster, const struct cluster_node *node,
    const struct sched_request *request, const struct fit *fit, uint32_t count, int64_t first,
    struct allocation *allocation)
{
    fit_add_host(node, request, allocation);
    if (count == 0)
        return;
    _cleanup_free_ uint32_t *at = xcalloc(node->n_gpus, sizeof(*at));
    bool is_shared = request_is_shared(request);
    uint32_t n = 0;
    for (uint32_t i = 0; i < node->n_gpus; i++)
        if (gpu_fits(cluster, node, &node->gpus[i], request, is_shared, fit))
            at[n++] = i;
    if (is_shared)
        tightest_first(node, request, first, at, n, count);
    else
        topology_choose(node, at, undisturbed_first(node, at, held_first(node, at, n, count), count), count);
    allocation->gpus = xreallocarray(allocation->gpus, allocation->n_gpus + count, sizeof(*allocation->gpus));
    for (uint32_t i = 0; i < count; i++)
        add_gpu(node, at[i], request, allocation);
}

void fit_take_pick(const struct cluster_node *node, uint32_t at, const struct sched_request *request,
    struct allocation *allocation)
{
    fit_add_host(node, request, allocation);
    allocation->gpus = xreallocarray(allocation->gpus, allocation->n_gpus + 1, sizeof(*allocation->gpus));
    add_gpu(node, at, request, allocation);
}
