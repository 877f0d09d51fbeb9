/* SPDX-License-Identifier: MIT */
/*
 * Giving way. A preemptible job runs on what is idle; when a job that is not preemptible finds no place, and
 * one would be there without some of them, those are told to stop: on the node where the least work is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define ASK_AGAIN_MS 600000 // a job for which others gave way in vain makes none give way for so long

/* The work that would be thrown away, in GPU-milliseconds. */
static double loss_of(const struct sched *sched, const struct sched_run *run)
{
    return (double)run->gpu_milli / SHARE_WHOLE * (double)(sched->now_ms - run->allocated_ms + 1);
}

static int compare_ages(const void *a, const void *b)
{
    const struct sched_run *const *left = a, *const *right = b;
    return ((*left)->allocated_ms > (*right)->allocated_ms) -
           ((*left)->allocated_ms < (*right)->allocated_ms);
}

/* Would it fit on this node without the first `count` of these runs? The ledger is given back as it was. */
static bool fits_without(struct sched *sched, uint32_t node, struct sched_run **victims, size_t count,
    const struct sched_request *request, const struct fit *fit)
{
    struct cluster *cluster = &sched->cluster;
    const struct cluster_node *where = &cluster->nodes[node];
    size_t n_dirty = cluster->n_dirty, held = 0;
    uint32_t needed = request->gpus;
    for (size_t i = 0; i < count; i++)
        held += victims[i]->allocation.n_gpus;
    if (fit_count(cluster, where, request, fit, needed) + held < needed)
        return false;
    for (size_t i = 0; i < count; i++)
        cluster_release(cluster, &victims[i]->allocation);
    bool fits = fit_host(where, request, fit) && fit_count(cluster, where, request, fit, needed) >= needed;
    for (size_t i = 0; i < request->n_picks && fits; i++) {
        const struct gpu_pick *pick = &request->picks[i];
        const struct cluster_gpu *gpu = cluster_find_index(where, pick->index);
        fits = gpu != NULL && (pick->node == NULL || strcmp(pick->node, where->name) == 0) &&
               fit_gpu(cluster, where, gpu, request, fit);
    }
    for (size_t i = 0; i < count; i++)
        cluster_book(cluster, &victims[i]->allocation);
    cluster->n_dirty = n_dirty; // nothing has come free
    return fits;
}

/* Preemptible jobs that come after the class; one of a higher priority would only take its place back. */
static size_t collect_victims(
    const struct sched *sched, uint32_t node, const struct queue_class *class, struct sched_run **ret)
{
    const struct node_runs *runs = &sched->nodes[node];
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const struct class_key *key = &runs->runs[i]->job->class->key;
        if (key->is_preemptible && key->priority <= class->key.priority)
            ret[count++] = runs->runs[i];
    }
    qsort(ret, count, sizeof(struct sched_run *),
        compare_ages); // the oldest first: they lose most, and are spared first
    return count;
}

/* Victims that are not needed for it to fit are let off, the first ones first. */
static size_t spare(struct sched *sched, uint32_t node, struct sched_run **victims, size_t count,
    const struct sched_request *request, const struct fit *fit)
{
    for (size_t i = 0; i < count && count > 1;) {
        struct sched_run *spared = victims[i];
        memmove(&victims[i], &victims[i + 1], (count - i - 1) * sizeof(struct sched_run *));
        if (fits_without(sched, node, victims, count - 1, request, fit)) {
            count--;
        } else {
            memmove(&victims[i + 1], &victims[i], (count - i - 1) * sizeof(struct sched_run *));
            victims[i++] = spared;
        }
    }
    return count;
}

void sched_give_way(struct sched *sched, struct sched_run *run, const char *why)
{
    if (run->is_giving_way)
        return;
    run->is_giving_way = true;
    sched->counts.preemptions++;
    sched->callbacks.preempt(sched->callbacks.arg, run->job->entry.job, why);
}

bool sched_make_way(struct sched *sched, struct queue_class *class, const struct fit *fit)
{
    const struct sched_request *request = &class->key.request;
    struct sched_run **best = NULL;
    size_t n_best = 0;
    double least = 0;
    bool was_asked = class->asked_ms != 0 && sched->now_ms - class->asked_ms < ASK_AGAIN_MS;
    if (request->nodes > 1 || was_asked)
        return false; // told one node at a time, and not again and again for one job
    for (uint32_t node = 0; node < sched->n_nodes; node++) {
        struct node_runs *runs = &sched->nodes[node];
        if (runs->count == 0)
            continue;
        struct sched_run **victims = xcalloc(runs->count, sizeof(struct sched_run *));
        size_t count = collect_victims(sched, node, class, victims);
        if (count == 0 || !fits_without(sched, node, victims, count, request, fit)) {
            free(victims);
            continue;
        }
        count = spare(sched, node, victims, count, request, fit);
        double loss = 0;
        for (size_t i = 0; i < count; i++)
            loss += victims[i]->is_giving_way ? 0 : loss_of(sched, victims[i]);
        if (best == NULL || loss < least) {
            free(best);
            best = victims;
            n_best = count;
            least = loss;
        } else {
            free(victims);
        }
    }
    /* Backwards: a callback may end the run at once, which frees it. */
    for (size_t i = n_best; i-- > 0;)
        sched_give_way(sched, best[i], "a job that is not preemptible needs its GPUs");
    free(best);
    if (n_best > 0)
        class->asked_ms = sched->now_ms;
    return n_best > 0;
}
