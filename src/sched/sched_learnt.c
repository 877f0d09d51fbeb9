/* SPDX-License-Identifier: MIT */
/*
 * Giving way to jobs that are expected to be done sooner. Waiting and running jobs have an index, the Gittins
 * index of what is believed of them after the time they have run (history_cell.h), low for those that are
 * likely to be over soon. Who waits and finds no place makes running jobs give way whose index is HYSTERESIS
 * times as large, on the node where they are the least loss: the sum of GPUs / index. An index only changes
 * when a job gets to another stage or a job of the same or a near burst ends, which is seldom enough that
 * work is not thrown to and fro; and nobody gives way within its quantum.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define HYSTERESIS 2.0 // between 1.2 and 4 nothing changes much; below, jobs alike in all swap places

/* What has to come free on one node, and what that takes. */
struct way {
    uint32_t node;
    double loss;
    size_t n_victims;
};

struct making {
    struct sched *sched;
    const struct queue_class *class;
    const struct fit *fit;
    struct way *ways;
    size_t n_ways;
};

static double index_of(const struct sched_run *run)
{
    return run->index_ms > 1 ? (double)run->index_ms : 1;
}

/* Time that it ran is no waiting. Who was kept waiting for as long as the age cap is kept waiting no more. */
static bool has_waited(
    const struct sched *sched, const struct queue_class *class, int64_t submit_ms, int64_t until_ms)
{
    int64_t cap_ms = sched->settings.age_cap_ms;
    return cap_ms > 0 && until_ms - submit_ms - history_stage_ms(class->key.stage) >= cap_ms;
}

static bool may_move(const struct making *making, const struct sched_run *run)
{
    const struct sched *sched = making->sched;
    const struct queue_class *class = making->class;
    const struct class_key *key = &run->job->class->key;
    if (run->is_giving_way)
        return true;
    if (sched->now_ms - run->allocated_ms < sched->settings.quantum_ms ||
        has_waited(sched, run->job->class, run->job->entry.submit_ms, run->allocated_ms))
        return false;
    if (key->priority != class->key.priority)
        return key->priority < class->key.priority;
    if (key->is_preemptible != class->key.is_preemptible)
        return key->is_preemptible;
    if (has_waited(sched, class, class->first->submit_ms, sched->now_ms))
        return true;
    return index_of(run) > HYSTERESIS * (double)class->expected_ms;
}

/* Who gives way already comes first, then who is expected to take longest. */
static int compare_victims(const void *a, const void *b)
{
    const struct sched_run *left = *(struct sched_run *const *)a, *right = *(struct sched_run *const *)b;
    if (left->is_giving_way != right->is_giving_way)
        return left->is_giving_way ? -1 : 1;
    if (left->index_ms != right->index_ms)
        return left->index_ms > right->index_ms ? -1 : 1;
    return (left->job->entry.job < right->job->entry.job) - (left->job->entry.job > right->job->entry.job);
}

/* Runs on the node that may be told, sorted; the GPUs that they hold there. */
static size_t collect(const struct making *making, uint32_t node, struct sched_run **ret, uint32_t *ret_gpus)
{
    const struct node_runs *runs = &making->sched->nodes[node];
    size_t count = 0;
    *ret_gpus = 0;
    for (size_t i = 0; i < runs->count; i++) {
        const struct allocation *held = &runs->runs[i]->allocation;
        if (!may_move(making, runs->runs[i]))
            continue;
        for (size_t k = 0; k < held->n_gpus; k++)
            *ret_gpus += held->gpus[k].node == node;
        ret[count++] = runs->runs[i];
    }
    qsort(ret, count, sizeof(struct sched_run *), compare_victims);
    return count;
}

/* How many of these must go for `gpus` GPUs of the node; more than `count`: it does not help. The ledger is
 * given back as it was. */
static size_t needed(
    const struct making *making, uint32_t node, uint32_t gpus, struct sched_run **victims, size_t count)
{
    struct cluster *cluster = &making->sched->cluster;
    const struct cluster_node *where = &cluster->nodes[node];
    const struct sched_request *request = &making->class->key.request;
    size_t n_dirty = cluster->n_dirty, n = 0;
    while (!fit_host(where, request, making->fit) ||
           fit_count(cluster, where, request, making->fit, gpus) < gpus) {
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

/* Looks for a way to so many GPUs on this node. */
static bool find_way(const struct making *making, uint32_t node, uint32_t gpus, struct way *ret)
{
    const struct sched *sched = making->sched;
    const struct cluster_node *where = &sched->cluster.nodes[node];
    struct sched_run *victims[NODE_RUNS_LOOKED];
    uint32_t held;
    if (!where->is_up || where->n_gpus < gpus || node >= sched->n_nodes ||
        sched->nodes[node].count > NODE_RUNS_LOOKED)
        return false;
    size_t count = collect(making, node, victims, &held);
    if (held + fit_count(&sched->cluster, where, &making->class->key.request, making->fit, gpus) < gpus)
        return false;
    *ret = (struct way){ .node = node, .n_victims = needed(making, node, gpus, victims, count) };
    if (ret->n_victims > count)
        return false;
    for (size_t i = 0; i < ret->n_victims; i++)
        if (!victims[i]->is_giving_way)
            ret->loss += (double)victims[i]->gpu_milli / SHARE_WHOLE / index_of(victims[i]);
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

/* Adds ways to `gpus` GPUs on each of `parts` nodes more, those of least loss. False: there are not so many.
 */
static bool add_ways(struct making *making, size_t parts, uint32_t gpus)
{
    const struct cluster *cluster = &making->sched->cluster;
    struct way *found = xcalloc(cluster->n_nodes + 1, sizeof(*found));
    size_t n = 0;
    for (uint32_t node = 0; node < cluster->n_nodes; node++)
        if (!is_taken(making, node))
            n += find_way(making, node, gpus, &found[n]);
    qsort(found, n, sizeof(*found), compare_ways);
    bool is_enough = n >= parts;
    making->ways = xreallocarray(making->ways, making->n_ways + parts + 1, sizeof(*making->ways));
    for (size_t i = 0; is_enough && i < parts; i++)
        making->ways[making->n_ways++] = found[i];
    free(found);
    return is_enough;
}

static bool find_all_ways(struct making *making)
{
    const struct sched_request *request = &making->class->key.request;
    const struct cluster *cluster = &making->sched->cluster;
    uint32_t most = 0;
    if (request->n_picks > 0 || request->gpus == 0)
        return false;
    if (request->nodes > 1)
        return add_ways(making, request->nodes, request->gpus / request->nodes);
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

/* By their ids: one may be on several of the nodes, and a callback may end it at once. */
static void tell(const struct making *making)
{
    struct sched *sched = making->sched;
    size_t count = 0;
    uint64_t *ids = xcalloc(making->n_ways * NODE_RUNS_LOOKED + 1, sizeof(*ids));
    for (size_t i = 0; i < making->n_ways; i++) {
        struct sched_run *victims[NODE_RUNS_LOOKED];
        uint32_t held;
        (void)collect(making, making->ways[i].node, victims, &held);
        for (size_t k = 0; k < making->ways[i].n_victims; k++)
            ids[count++] = victims[k]->job->entry.job;
    }
    for (size_t i = 0; i < count; i++) {
        struct sched_job *job = sched_find(sched, ids[i]);
        if (job != NULL && job->run != NULL)
            sched_give_way(sched, job->run, "jobs that are expected to be over sooner need its GPUs");
    }
    free(ids);
}

bool sched_learnt_make_way(struct sched *sched, struct queue_class *class, const struct fit *fit)
{
    struct making making = { .sched = sched, .class = class, .fit = fit };
    bool is_found = find_all_ways(&making);
    uint64_t n_over = sched->n_over;
    if (is_found)
        tell(&making);
    free(making.ways);
    bool is_free = sched->n_over != n_over;
    sched->n_over = n_over; // who was told is counted with
    return is_free;
}

/* The index of runs of this class's burst at that stage, which is the same for all of them. */
static int64_t index_at(const struct sched *sched, const struct queue_class *class, unsigned stage)
{
    struct estimate estimate;
    sched_class_estimate(sched, &class->key, history_stage_ms(stage), &estimate);
    return estimate.index_ms;
}

void sched_learnt_near(struct sched *sched, struct queue_class *const *near, size_t count)
{
    int64_t known[HISTORY_NEAR][HISTORY_STAGES] = { 0 }; // 0: not reckoned yet
    for (size_t i = 0; i < sched->n_runs; i++) {
        struct sched_run *run = sched->runs[i];
        uint64_t burst = run->job->class->key.burst;
        for (size_t k = 0; burst != 0 && k < count; k++) {
            if (near[k]->key.burst != burst)
                continue;
            int64_t *index = &known[k][run->stage];
            if (*index == 0)
                *index = index_at(sched, near[k], run->stage);
            run->index_ms = *index;
            break;
        }
    }
}
