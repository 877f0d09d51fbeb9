/* SPDX-License-Identifier: MIT */
/*
 * The value of a state of a node.
 *
 * Plain: minus the part of its free GPUs that the typical shapes cannot use (Weng et al., "Beware of
 * Fragmentation", ATC'23). A shape that the node cannot host, because of GPUs, CPUs or model, can use none of
 * them; others cannot use GPUs with less free than they request of each.
 *
 * Plus adds four things. Usable GPUs are also limited by the CPUs. The rest of a partly used GPU is worth
 * what the shares that fit it would cost elsewhere (fgd_holes.c), so that shares that fill a GPU are
 * combined. Requests count by their GPUs: those for all GPUs of a node are rare, and would not be typical.
 * And a small slope over the positions of the nodes replaces rounding, which makes many nodes equal in the
 * plain rule so that the first of them is filled: the far end of the order stays empty for wide jobs. It must
 * match the order in which all other placement code visits the nodes: otherwise no end stays empty when jobs
 * end, and jobs with many GPUs wait twice as long.
 *
 * Best fit is the variant that the same paper compares with.
 */
#include "sched/placement/fgd.h"

#include <math.h>

uint32_t fgd_memory_share(uint64_t gpu_mem, uint64_t gpu_bytes)
{
    if (gpu_bytes == 0 || gpu_mem > gpu_bytes)
        return SHARE_WHOLE + 1;
    return (uint32_t)ceil((double)gpu_mem / (double)gpu_bytes * SHARE_WHOLE);
}

static uint16_t free_share(const struct cluster_gpu *gpu)
{
    if (!cluster_gpu_takes_share(gpu) || gpu->share_booked >= SHARE_WHOLE)
        return 0;
    uint32_t share = SHARE_WHOLE - gpu->share_booked;
    bool is_memory_free = gpu->memory_booked == 0 && gpu->memory_external == 0;
    if (is_memory_free || gpu->memory_bytes == 0)
        return (uint16_t)(cluster_gpu_is_whole(gpu) ? SHARE_WHOLE
                          : share < SHARE_WHOLE     ? share
                                                    : SHARE_WHOLE - 1);
    /* Booked memory was rounded down, so the rest is rounded down as well. */
    double rest = (double)cluster_gpu_memory_left(gpu) / (double)gpu->memory_bytes * SHARE_WHOLE;
    return (uint16_t)(rest < share ? rest : share);
}

void fgd_node_read(const struct cluster *cluster, const struct cluster_node *node, struct fgd_node *ret)
{
    ret->cpu_milli = node->cpu_milli > node->cpu_booked ? node->cpu_milli - node->cpu_booked : 0;
    ret->memory = node->memory > node->memory_booked ? node->memory - node->memory_booked : 0;
    if (node->memory == 0)
        ret->memory = UINT64_MAX;
    ret->models = ret->gpu_bytes = 0;
    ret->n = 0;
    for (size_t i = 0; i < node->n_gpus && ret->n < NODE_GPUS_LIMIT; i++) {
        const struct cluster_gpu *gpu = &node->gpus[i];
        if (!cluster_gpu_is_open(node, gpu))
            continue;
        ret->models |= 1ULL << (gpu->model % 64);
        ret->gpu_bytes = gpu->memory_bytes > ret->gpu_bytes ? gpu->memory_bytes : ret->gpu_bytes;
        ret->gpu[ret->n] = (uint16_t)i;
        ret->free[ret->n++] = free_share(gpu);
    }
}

/* --- GPUs in ascending order of their free share --- */

struct ladder {
    uint32_t n, total;
    uint16_t free[NODE_GPUS_LIMIT];
    uint32_t small,
        small_sum; // for the last shape by share: GPUs with less than it requests, and their free share
};

/* The GPUs whose free share is less than a shape requests of each. */
struct below {
    uint32_t share, n, sum;
};

static void order_gpus(const struct fgd_node *node, struct ladder *ret)
{
    ret->n = node->n;
    ret->total = ret->small = ret->small_sum = 0;
    for (uint32_t i = 0; i < node->n; i++) {
        uint32_t at = i;
        ret->total += node->free[i];
        for (; at > 0 && ret->free[at - 1] > node->free[i]; at--)
            ret->free[at] = ret->free[at - 1];
        ret->free[at] = node->free[i];
    }
}

/* Shapes are in order of share, so one walk visits both. */
static struct below below(struct ladder *ladder, const struct fgd_node *node, const struct fgd_shape *shape)
{
    struct below below = { .share = shape->share };
    if (shape->share > 0) {
        below.n = ladder->small;
        below.sum = ladder->small_sum;
    } else
        below.share = fgd_memory_share(shape->gpu_mem, node->gpu_bytes);
    while (below.n < ladder->n && ladder->free[below.n] < below.share)
        below.sum += ladder->free[below.n++];
    if (shape->share > 0) {
        ladder->small = below.n;
        ladder->small_sum = below.sum;
    }
    return below;
}

static bool can_host(const struct fgd_node *node, const struct fgd_shape *shape, const struct below *below)
{
    return node->cpu_milli >= shape->cpu_milli && node->n - below->n >= shape->gpus &&
           (shape->models == 0 || (shape->models & node->models) != 0);
}

/* --- plain --- */

static double value_plain(const struct fgd_node *node, const struct fgd_typicals *typicals)
{
    struct ladder ladder;
    order_gpus(node, &ladder);
    double unusable = 0;
    for (size_t i = 0; ladder.total > 0 && i < typicals->n; i++) {
        const struct fgd_shape *shape = &typicals->shapes[i];
        struct below small = { 0 };
        bool is_usable = false;
        if (shape->gpus > 0) {
            small = below(&ladder, node, shape);
            is_usable = can_host(node, shape, &small);
        }
        unusable += shape->weight * (is_usable ? small.sum : ladder.total);
    }
    return -unusable;
}

/* As published: a whole number from 0 to 100, so that many nodes are equal and the first of them is filled.
 */
static float score_plain(double before, double after)
{
    return (float)floor(100 / (1 + exp((before - after) / SHARE_WHOLE)));
}

const struct fgd_rule fgd_rule_plain = { .value = value_plain, .score = score_plain, .at_once = UINT32_MAX };

/* --- plus --- */

#define HOLES 10.0 // weight of the prices; 4 to 16 do as well

/* The part of the node that the shape can use: the GPUs with enough free, limited by the CPUs. */
static double usable(const struct fgd_node *node, const struct fgd_shape *shape, struct ladder *ladder)
{
    struct below small = below(ladder, node, shape);
    if (!can_host(node, shape, &small))
        return 0;
    double sum = ladder->total - small.sum;
    if (shape->cpu_milli == 0)
        return sum;
    double by_cpu = (double)node->cpu_milli / shape->cpu_milli;
    if (by_cpu * small.share * shape->gpus >= sum)
        return sum;
    uint32_t parts = 0;
    for (uint32_t i = small.n; i < ladder->n; i++)
        parts += small.share * 2 > SHARE_WHOLE ? 1 : ladder->free[i] / small.share;
    uint32_t copies = parts / shape->gpus;
    return by_cpu < copies ? sum * by_cpu / copies : sum;
}

static double value_plus(const struct fgd_node *node, const struct fgd_typicals *typicals)
{
    struct ladder ladder;
    order_gpus(node, &ladder);
    double use = 0, holes = 0;
    for (uint32_t i = 0; i < node->n; i++)
        holes += SHARE_WHOLE * typicals->holes[node->free[i] * HOLE_UNITS / SHARE_WHOLE];
    for (size_t i = 0; ladder.total > 0 && i < typicals->n; i++)
        if (typicals->shapes[i].gpus > 0)
            use += typicals->shapes[i].weight * usable(node, &typicals->shapes[i], &ladder);
    if (typicals->gpu_weight > 0)
        use /= typicals->gpu_weight;
    return use - ladder.total + HOLES * (holes - ladder.total);
}

static float score_plus(double before, double after)
{
    return (float)(after - before);
}

const struct fgd_rule fgd_rule_plus = { .value = value_plus,
    .score = score_plus,
    .slope = 2500,
    .at_once = 512,
    .is_for_shares = true,
    .is_by_gpus = true };

/* --- best fit as published --- */

#define FULL_CPU_MILLI 128000.0 // of the largest nodes there
#define FULL_GPUS      8.0

static double value_best_fit(const struct fgd_node *node, const struct fgd_typicals *typicals)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < node->n; i++)
        total += node->free[i];
    return -(node->cpu_milli / FULL_CPU_MILLI * .5 + total / (FULL_GPUS * SHARE_WHOLE) * .5);
}

static float score_best_fit(double before, double after)
{
    return (float)floor((1 + after) * 100);
}

const struct fgd_rule fgd_rule_best_fit = {
    .value = value_best_fit, .score = score_best_fit, .at_once = UINT32_MAX, .takes_tightest = true
};
