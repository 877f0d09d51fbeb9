/* SPDX-License-Identifier: MIT */
/* A node's fragment for one shape: all its idle GPUs if the shape cannot run there (or needs no GPU), else
 * what is left on GPUs that are too full for it. Kept per node, and recomputed for the node that changed. */
#include "lab/sim/pack_frag.h"

#include <string.h>

#include "base/memory.h"

#define TYPICAL_PART 0.95

static bool is_alike(
    const struct typical_shape *shape, const struct sim_job *job, uint32_t share, const char *model)
{
    return shape->cpu_milli == job->cpu_milli && shape->gpus == job->gpus && shape->share == share &&
           shape->model == model;
}

static void add_shape(struct pack_frag *frag, const struct workload *workload, const struct sim_job *job)
{
    uint32_t share = job->gpus == 0 ? 0 : job->share > 0 ? job->share : SHARE_WHOLE;
    const char *model = job->model == 0 ? NULL : workload->models.items[job->model];
    size_t at = 0, n = frag->n_shapes;
    while (at < n && !is_alike(&frag->shapes[at], job, share, model))
        at++;
    if (at == n) {
        if ((n & (n - 1)) == 0)
            frag->shapes = xreallocarray(frag->shapes, n == 0 ? 1 : 2 * n, sizeof(*frag->shapes));
        frag->shapes[frag->n_shapes++] = (struct typical_shape){
            .cpu_milli = job->cpu_milli, .gpus = job->gpus, .share = share, .model = model
        };
    }
    frag->shapes[at].weight++;
}

/* The most frequent first; equal ones in order of first sight. */
static void keep_typical(struct pack_frag *frag, double pods)
{
    for (size_t i = 1; i < frag->n_shapes; i++) {
        struct typical_shape shape = frag->shapes[i];
        size_t at = i;
        for (; at > 0 && frag->shapes[at - 1].weight < shape.weight; at--)
            frag->shapes[at] = frag->shapes[at - 1];
        frag->shapes[at] = shape;
    }
    double sum = 0;
    size_t kept = 0;
    while (kept < frag->n_shapes && sum < TYPICAL_PART * pods)
        sum += frag->shapes[kept++].weight;
    for (size_t i = 0; i < kept; i++)
        frag->shapes[i].weight /= sum;
    frag->n_shapes = kept;
}

static bool has_model(const char *list, const char *model)
{
    size_t length = strlen(model);
    for (const char *at = list; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, model, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return true;
    }
    return false;
}

static double fragment(
    const struct cluster *cluster, const struct cluster_node *node, const struct typical_shape *shape)
{
    double idle = 0, unusable = 0;
    uint32_t fitting = 0;
    for (size_t i = 0; i < node->n_gpus; i++) {
        const struct cluster_gpu *gpu = &node->gpus[i];
        uint32_t free_share = gpu->is_exclusive ? 0 : SHARE_WHOLE - gpu->share_booked;
        idle += free_share;
        fitting += free_share >= shape->share;
        unusable += free_share < shape->share ? free_share : 0;
    }
    const char *model = node->n_gpus > 0 ? cluster->models[node->gpus[0].model] : "";
    bool is_host = shape->share > 0 && node->cpu_milli - node->cpu_booked >= shape->cpu_milli &&
                   fitting >= shape->gpus && (shape->model == NULL || has_model(shape->model, model));
    return is_host ? unusable : idle;
}

void pack_frag_update(struct pack_frag *frag, const struct cluster *cluster, uint32_t node)
{
    double sum = 0;
    for (size_t i = 0; i < frag->n_shapes; i++)
        sum += frag->shapes[i].weight * fragment(cluster, &cluster->nodes[node], &frag->shapes[i]);
    frag->total += sum - frag->of_node[node];
    frag->of_node[node] = sum;
}

void pack_frag_init(struct pack_frag *frag, const struct workload *workload, const struct cluster *cluster)
{
    *frag = (struct pack_frag){ .of_node = xcalloc(cluster->n_nodes + 1, sizeof(double)) };
    for (size_t i = 0; i < workload->n_jobs; i++)
        add_shape(frag, workload, &workload->jobs[i]);
    keep_typical(frag, (double)workload->n_jobs);
    for (uint32_t node = 0; node < cluster->n_nodes; node++)
        pack_frag_update(frag, cluster, node);
}

void pack_frag_clear(struct pack_frag *frag)
{
    free(frag->shapes);
    free(frag->of_node);
    *frag = (struct pack_frag){ 0 };
}
