/* SPDX-License-Identifier: MIT */
/*
 * Makes room for a blocked job on the nodes where this costs least. On each node the preemptible running jobs
 * are removed from the ledger one after the other until the job's part fits; the cheapest of these nodes are
 * chosen, as many as the job needs. Before any job is preempted, all of them together are tested: jobs that
 * need not be preempted are spared, and none is preempted in vain.
 *
 * The caller decides which jobs are preemptible, in which order, and at what cost (struct way_rules).
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"

/* The resources to free on one node, and the jobs to preempt for them. */
struct way {
    uint32_t node, gpus;
    double loss;
    size_t n_victims;
};

struct making {
    struct sched *sched;
    const struct queue_class *class;
    const struct fit *fit;
    const struct way_rules *rules;
    struct way *ways;
    size_t n_ways;
};

/* Collects the preemptible runs on the node, sorted. */
static size_t collect(const struct making *making, uint32_t node, struct sched_run **ret)
{
    const struct node_runs *runs = &making->sched->nodes[node];
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++)
        if (runs->runs[i]->is_giving_way ||
            making->rules->may_move(making->sched, making->class, runs->runs[i]))
            ret[count++] = runs->runs[i];
    qsort(ret, count, sizeof(struct sched_run *), making->rules->compare);
    return count;
}

static uint32_t gpus_held_on(uint32_t node, struct sched_run *const *runs, size_t count)
{
    uint32_t held = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < runs[i]->allocation.n_gpus; k++)
            held += runs[i]->allocation.gpus[k].node == node;
    return held;
}

static bool picks_fit(const struct making *making, const struct cluster_node *node)
{
    const struct sched_request *request = &making->class->key.request;
    for (size_t i = 0; i < request->n_picks; i++) {
        const struct gpu_pick *pick = &request->picks[i];
        if (pick->node != NULL && strcmp(pick->node, node->name) != 0)
            continue;
        const struct cluster_gpu *gpu = cluster_find_index(node, pick->index);
        if (gpu == NULL || !fit_gpu(&making->sched->cluster, node, gpu, request, making->fit))
            return false;
    }
    return true;
}

static bool part_fits(const struct making *making, uint32_t node, uint32_t gpus)
{
    const struct cluster *cluster = &making->sched->cluster;
    const struct cluster_node *where = &cluster->nodes[node];
    const struct sched_request *request = &making->class->key.request;
    if (!fit_host(where, request, making->fit))
        return false;
    if (request->n_picks > 0)
        return picks_fit(making, where);
    return fit_count(cluster, where, request, making->fit, gpus) >= gpus;
}

/* The number of these that must be preempted for `gpus` GPUs of the node; more than `count`: it would not
 * help. The ledger is restored. */
static size_t needed(
    const struct making *making, uint32_t node, uint32_t gpus, struct sched_run **victims, size_t count)
{
    struct cluster *cluster = &making->sched->cluster;
    size_t n_dirty = cluster->n_dirty, n = 0;
    while (!part_fits(making, node, gpus)) {
        if (n == count) {
            n = count + 1;
            break;
        }
        cluster_release(cluster, &victims[n++]->allocation);
    }
    for (size_t i = 0; i < n && i < count; i++)
        cluster_book(cluster, &victims[i]->allocation);
    cluster->n_dirty = n_dirty; // nothing has come free
    return n;
}

static double loss_of(const struct making *making, const struct sched_run *run)
{
    return run->is_giving_way ? 0 : making->rules->loss(making->sched, run);
}

/* Searches a way to this many GPUs on this node. */
static bool find_way(const struct making *making, uint32_t node, uint32_t gpus, struct way *ret)
{
    const struct sched *sched = making->sched;
    const struct cluster_node *where = &sched->cluster.nodes[node];
    const struct sched_request *request = &making->class->key.request;
    struct sched_run *victims[NODE_RUNS_LOOKED];
    if (!where->is_up || where->n_gpus < gpus || node >= sched->n_nodes ||
        sched->nodes[node].count > NODE_RUNS_LOOKED || !cluster_node_admits(where, request))
        return false;
    size_t count = collect(making, node, victims);
    if (gpus > 0 &&
        gpus_held_on(node, victims, count) + fit_count(&sched->cluster, where, request, making->fit, gpus) <
            gpus)
        return false;
    *ret =
        (struct way){ .node = node, .gpus = gpus, .n_victims = needed(making, node, gpus, victims, count) };
    if (ret->n_victims > count)
        return false;
    for (size_t i = 0; i < ret->n_victims; i++)
        ret->loss += loss_of(making, victims[i]);
    return true;
}

static bool is_taken(const struct making *making, uint32_t node)
{
    for (size_t i = 0; i < making->n_ways; i++)
        if (making->ways[i].node == node)
            return true;
    return false;
}

static int compare_ways(const void *a, const void *b)
{
    const struct way *left = a, *right = b;
    if (left->loss != right->loss)
        return left->loss < right->loss ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

/* Adds ways to `gpus` GPUs on `parts` more nodes each, those of least loss. False: there are too few.
 */
static bool add_ways(struct making *making, size_t parts, uint32_t gpus)
{
    const struct cluster *cluster = &making->sched->cluster;
    const char *named = making->class->key.request.nodelist;
    const struct cluster_node *only = named != NULL ? cluster_find(cluster, named) : NULL; // a list of one
    uint32_t from = only != NULL ? only->position : 0;
    uint32_t to = only != NULL ? from + 1 : (uint32_t)cluster->n_nodes;
    _cleanup_free_ struct way *found = xcalloc(to - from + 1, sizeof(*found));
    size_t n = 0;
    for (uint32_t node = from; node < to; node++)
        if (!is_taken(making, node))
            n += find_way(making, node, gpus, &found[n]);
    qsort(found, n, sizeof(*found), compare_ways);
    bool is_enough = n >= parts;
    making->ways = xreallocarray(making->ways, making->n_ways + parts + 1, sizeof(*making->ways));
    for (size_t i = 0; is_enough && i < parts; i++)
        making->ways[making->n_ways++] = found[i];
    return is_enough;
}

/* Named GPUs, on the nodes named with them. */
static bool add_named(struct making *making)
{
    const struct sched_request *request = &making->class->key.request;
    const struct cluster *cluster = &making->sched->cluster;
    making->ways = xcalloc(request->n_picks, sizeof(*making->ways));
    for (size_t i = 0; i < request->n_picks; i++) {
        const struct cluster_node *node = cluster_find(cluster, request->picks[i].node);
        if (node == NULL)
            return false;
        if (is_taken(making, node->position))
            continue;
        if (!find_way(making, node->position, 0, &making->ways[making->n_ways]))
            return false;
        making->n_ways++;
    }
    return true;
}

static bool find_all_ways(struct making *making)
{
    const struct sched_request *request = &making->class->key.request;
    const struct cluster *cluster = &making->sched->cluster;
    uint32_t most = 0;
    if (request->n_picks > 0)
        return request->picks[0].node != NULL ? add_named(making) : add_ways(making, 1, 0);
    if (request->nodes > 1) {
        uint32_t part = request->gpus / request->nodes, rest = request->gpus % request->nodes;
        return (rest == 0 || add_ways(making, rest, part + 1)) &&
               add_ways(making, request->nodes - rest, part);
    }
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].n_gpus > most)
            most = (uint32_t)cluster->nodes[i].n_gpus;
    if (request->gpus <= most)
        return add_ways(making, 1, request->gpus);
    if (!request_may_span(request) || most == 0)
        return false;
    return add_ways(making, request->gpus / most, most) &&
           (request->gpus % most == 0 || add_ways(making, 1, request->gpus % most));
}

/* --- all ways together --- */

struct victim {
    struct sched_run *run;
    double loss;
    bool is_out; // of the ledger
};

static int compare_losses(const void *a, const void *b)
{
    const struct victim *left = a, *right = b;
    if (left->loss != right->loss)
        return left->loss > right->loss ? -1 : 1;
    return (left->run->job->entry.job > right->run->job->entry.job) -
           (left->run->job->entry.job < right->run->job->entry.job);
}

/* The runs of all ways, each once (it may be on several of the nodes), the greatest loss first. */
static size_t list_victims(const struct making *making, struct victim **ret)
{
    struct victim *all = NULL;
    size_t n = 0;
    for (size_t i = 0; i < making->n_ways; i++) {
        struct sched_run *victims[NODE_RUNS_LOOKED];
        (void)collect(making, making->ways[i].node, victims);
        all = xreallocarray(all, n + making->ways[i].n_victims + 1, sizeof(*all));
        for (size_t k = 0; k < making->ways[i].n_victims; k++) {
            bool is_listed = false;
            for (size_t j = 0; j < n && victims[k]->allocation.n_nodes > 1; j++)
                is_listed |= all[j].run == victims[k];
            if (!is_listed)
                all[n++] = (struct victim){ .run = victims[k], .loss = loss_of(making, victims[k]) };
        }
    }
    qsort(all, n, sizeof(*all), compare_losses);
    *ret = all;
    return n;
}

static bool all_parts_fit(const struct making *making)
{
    for (size_t i = 0; i < making->n_ways; i++)
        if (!part_fits(making, making->ways[i].node, making->ways[i].gpus))
            return false;
    return true;
}

static bool has_place(const struct making *making)
{
    _cleanup_(allocation_clear) struct allocation found = { 0 };
    uint64_t work = 0;
    bool has = placement_choose(&placement_first_fit, NULL, &making->sched->cluster,
        &making->class->key.request, making->fit, &found, &work);
    return has;
}

/* Reduces the list to those that must be preempted. False: the job would not start anyway. The ledger is
 * unchanged. */
static bool spare(const struct making *making, struct victim *victims, size_t *count)
{
    struct cluster *cluster = &making->sched->cluster;
    size_t n_dirty = cluster->n_dirty, n = 0;
    for (size_t i = 0; i < *count; i++)
        cluster_release(cluster, &victims[i].run->allocation);
    bool is_good = has_place(making);
    for (size_t i = 0; i < *count; i++) {
        cluster_book(cluster, &victims[i].run->allocation);
        victims[i].is_out = is_good && !all_parts_fit(making);
        if (victims[i].is_out)
            cluster_release(cluster, &victims[i].run->allocation);
    }
    for (size_t i = 0; i < *count; i++) {
        if (!victims[i].is_out)
            continue;
        cluster_book(cluster, &victims[i].run->allocation);
        victims[n++] = victims[i];
    }
    cluster->n_dirty = n_dirty; // nothing has come free
    *count = n;
    return is_good;
}

/* By their ids: a callback may end one immediately. */
static void preempt_all(const struct making *making, const struct victim *victims, size_t count)
{
    struct sched *sched = making->sched;
    _cleanup_free_ uint64_t *ids = xcalloc(count + 1, sizeof(*ids));
    for (size_t i = 0; i < count; i++)
        ids[i] = victims[i].run->job->entry.job;
    for (size_t i = 0; i < count; i++) {
        struct sched_job *job = sched_find(sched, ids[i]);
        if (job != NULL && job->run != NULL)
            sched_give_way(sched, job->run, making->rules->why);
    }
}

bool sched_make_ways(struct sched *sched, const struct queue_class *class, const struct fit *fit,
    const struct way_rules *rules)
{
    struct making making = { .sched = sched, .class = class, .fit = fit, .rules = rules };
    struct victim *victims = NULL;
    size_t count = 0;
    bool is_found = find_all_ways(&making);
    if (is_found) {
        count = list_victims(&making, &victims);
        is_found = spare(&making, victims, &count) && count > 0;
    }
    if (is_found)
        preempt_all(&making, victims, count);
    free(victims);
    free(making.ways);
    return is_found;
}

bool sched_run_may_give_way(const struct sched *sched, const struct sched_run *run)
{
    const struct sched_callbacks *callbacks = &sched->callbacks;
    return callbacks->may_preempt == NULL || callbacks->may_preempt(callbacks->arg, run->job->entry.job);
}

void sched_give_way(struct sched *sched, struct sched_run *run, const char *why)
{
    if (run->is_giving_way || !sched_run_may_give_way(sched, run))
        return;
    run->is_giving_way = true;
    sched->counts.preemptions++;
    sched->callbacks.preempt(sched->callbacks.arg, run->job->entry.job, why);
}
