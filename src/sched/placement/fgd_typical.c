/* SPDX-License-Identifier: MIT */
/*
 * The typical shapes are the most frequent ones that together make up 95 % of requests. They are computed
 * after 100 submits, and again after as many more, at most 1,000 or the number of nodes: changing them
 * invalidates all cached scores, and each shape has a score per node. Each time the counts are halved, which
 * forgets old habits without a clock. Small changes are ignored.
 */
#include "sched/placement/fgd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "sched/cluster/node_index.h"

#define COUNTS_MAX   256U
#define COVERED      0.95
#define FIRST        100.0
#define INTERVAL     1000.0
#define FADE         0.5
#define SMALL_SHIFT  0.05 // total change of the weights
#define NODES_LOOKED 64U

struct fgd_count {
    struct fgd_shape shape; // its models and weight are filled in when it becomes typical
    char *model;
    double count;
};

void fgd_counts_init(struct fgd_counts *counts)
{
    *counts = (struct fgd_counts){ .next = FIRST, .typicals = { .is_all_plain = true } };
    counts->typicals.holes[HOLE_UNITS] = 1;
}

void fgd_counts_clear(struct fgd_counts *counts)
{
    for (size_t i = 0; i < counts->n; i++)
        free(counts->items[i].model);
    free(counts->items);
    *counts = (struct fgd_counts){ 0 };
}

/* A job on several nodes counts as its part on each node; one wider than all nodes counts as the widest
 * node. */
static struct fgd_shape shape_of(const struct cluster *cluster, const struct sched_request *request)
{
    struct fgd_shape shape = { .cpu_milli = request->cpu_milli, .memory = request->memory };
    struct node_need need = { .gpus = request->gpus };
    uint64_t work = 0;
    if (request->gpus == 0)
        return shape;
    shape.gpus = request->nodes > 1 ? (request->gpus + request->nodes - 1) / request->nodes : request->gpus;
    shape.share = request_is_shared(request) ? request->share : SHARE_WHOLE;
    shape.gpu_mem = shape.share == 0 ? request->gpu_mem : 0;
    need.gpus = shape.gpus;
    if (shape.gpus > 1 && node_index_find(cluster->index, &need, 0, &work) < 0)
        for (shape.gpus = 1, need.gpus = 2; node_index_find(cluster->index, &need, 0, &work) >= 0;
             need.gpus++)
            shape.gpus = need.gpus;
    return shape;
}

static bool is_same(const struct fgd_shape *a, const struct fgd_shape *b)
{
    return a->cpu_milli == b->cpu_milli && a->gpus == b->gpus && a->share == b->share &&
           a->gpu_mem == b->gpu_mem && a->models == b->models;
}

/* The slot for a new shape: after the others, or that of the rarest. */
static struct fgd_count *add_count(struct fgd_counts *counts)
{
    if (counts->items == NULL)
        counts->items = xcalloc(COUNTS_MAX, sizeof(*counts->items));
    if (counts->n < COUNTS_MAX)
        return &counts->items[counts->n++];
    struct fgd_count *rarest = counts->items;
    for (size_t i = 1; i < counts->n; i++)
        if (counts->items[i].count < rarest->count)
            rarest = &counts->items[i];
    counts->total -= rarest->count;
    free(rarest->model);
    return rarest;
}

static void fade(struct fgd_counts *counts)
{
    for (size_t i = 0; i < counts->n; i++)
        counts->items[i].count *= FADE;
    counts->total *= FADE;
}

void fgd_counts_learn(struct fgd_counts *counts, const struct cluster *cluster,
    const struct sched_request *request, double weight)
{
    struct fgd_shape shape = shape_of(cluster, request);
    struct fgd_count *count = NULL;
    for (size_t i = 0; i < counts->n && count == NULL; i++)
        if (is_same(&counts->items[i].shape, &shape) && text_equal(counts->items[i].model, request->model))
            count = &counts->items[i];
    if (count == NULL) {
        count = add_count(counts);
        *count = (struct fgd_count){ .shape = shape, .model = xstrdup(request->model) };
    }
    count->shape.memory = shape.memory < count->shape.memory ? shape.memory : count->shape.memory;
    count->count += weight;
    counts->total += weight;
    counts->seen += weight;
}

static int compare_count(const void *a, const void *b)
{
    const struct fgd_count *const *left = a, *const *right = b;
    if ((*left)->count != (*right)->count)
        return (*left)->count < (*right)->count ? 1 : -1;
    return (*left > *right) - (*left < *right);
}

static int compare_share(const void *a, const void *b)
{
    const struct fgd_shape *left = a, *right = b;
    if (left->share != right->share)
        return left->share > right->share ? 1 : -1;
    if (left->gpus != right->gpus)
        return left->gpus > right->gpus ? 1 : -1;
    if (left->cpu_milli != right->cpu_milli)
        return left->cpu_milli > right->cpu_milli ? 1 : -1;
    if (left->models != right->models)
        return left->models > right->models ? 1 : -1;
    return (left->gpu_mem > right->gpu_mem) - (left->gpu_mem < right->gpu_mem);
}

static void make_typicals(
    const struct fgd_counts *counts, const struct cluster *cluster, struct fgd_typicals *ret)
{
    const struct fgd_count *order[COUNTS_MAX];
    double covered = 0;
    *ret = (struct fgd_typicals){ .is_all_plain = true };
    for (size_t i = 0; i < counts->n; i++)
        order[i] = &counts->items[i];
    qsort(order, counts->n, sizeof(order[0]), compare_count);
    for (size_t i = 0; i < counts->n && ret->n < TYPICAL_MAX && covered < COVERED * counts->total; i++) {
        struct fgd_shape *shape = &ret->shapes[ret->n++];
        *shape = order[i]->shape;
        if (order[i]->model != NULL)
            shape->models = cluster_models(cluster, &(struct sched_request){ .model = order[i]->model });
        shape->weight = order[i]->count;
        covered += shape->weight;
        ret->is_all_plain = ret->is_all_plain && shape->share == SHARE_WHOLE && shape->cpu_milli == 0 &&
                            order[i]->model == NULL && shape->memory == 0;
    }
    for (size_t i = 0; i < ret->n; i++) {
        ret->shapes[i].weight /= covered;
        ret->gpu_weight += ret->shapes[i].gpus > 0 ? ret->shapes[i].weight : 0;
    }
    qsort(ret->shapes, ret->n, sizeof(ret->shapes[0]), compare_share);
}

/* The memory of one GPU, for requests by memory alone: the mean of some nodes. */
static uint64_t usual_gpu_bytes(const struct cluster *cluster)
{
    uint64_t sum = 0, n = 0;
    size_t step = cluster->n_nodes / NODES_LOOKED + 1;
    for (size_t i = 0; i < cluster->n_nodes; i += step) {
        const struct cluster_node *node = &cluster->nodes[i];
        if (node->n_gpus == 0 || node->gpus[0].memory_bytes == 0)
            continue;
        sum += node->gpus[0].memory_bytes >> 20; // with 64 nodes no sum overflows
        n++;
    }
    return n > 0 ? (sum / n) << 20 : 0;
}

static void price_holes(const struct cluster *cluster, struct fgd_typicals *typicals)
{
    double demand[HOLE_UNITS + 1] = { 0 };
    uint64_t gpu_bytes = usual_gpu_bytes(cluster);
    for (size_t i = 0; i < typicals->n; i++) {
        const struct fgd_shape *shape = &typicals->shapes[i];
        uint32_t share = shape->share > 0 ? shape->share : fgd_memory_share(shape->gpu_mem, gpu_bytes);
        if (shape->gpus > 0 && share < SHARE_WHOLE)
            demand[(share * HOLE_UNITS + SHARE_WHOLE - 1) / SHARE_WHOLE] += shape->weight * shape->gpus;
    }
    fgd_holes(demand, typicals->holes);
}

/* The sum of the changes of all shapes' weights. */
static double shift(const struct fgd_typicals *a, const struct fgd_typicals *b)
{
    double sum = 0;
    size_t i = 0, k = 0;
    while (i < a->n || k < b->n) {
        int order = i == a->n ? 1 : k == b->n ? -1 : compare_share(&a->shapes[i], &b->shapes[k]);
        double left = order <= 0 ? a->shapes[i++].weight : 0, right = order >= 0 ? b->shapes[k++].weight : 0;
        sum += fabs(left - right);
    }
    return sum;
}

void fgd_counts_settle(struct fgd_counts *counts, const struct cluster *cluster)
{
    bool is_due = counts->seen >= counts->next;
    if (!is_due && (counts->n_models == cluster->n_models || counts->typicals.n == 0))
        return;
    struct fgd_typicals fresh;
    make_typicals(counts, cluster, &fresh);
    if (is_due) {
        double most = (double)cluster->n_nodes > INTERVAL ? (double)cluster->n_nodes : INTERVAL;
        counts->next = counts->seen + (counts->seen < most ? counts->seen : most);
        fade(counts);
    }
    bool has_models = counts->n_models == cluster->n_models;
    counts->n_models = cluster->n_models;
    if (has_models && shift(&counts->typicals, &fresh) <= SMALL_SHIFT &&
        fresh.is_all_plain == counts->typicals.is_all_plain)
        return;
    price_holes(cluster, &fresh);
    fresh.epoch = counts->typicals.epoch + 1;
    counts->typicals = fresh;
}
