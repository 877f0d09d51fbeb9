/* SPDX-License-Identifier: MIT */
/*
 * Predicts which job starts when a running one ends, and where: the head of the queue, on the GPUs of a job
 * with the same request. There must be only one such job, because it is unknown which of several ends first;
 * jobs without GPUs on one node are equivalent. Predictions may be wrong, and book nothing.
 */
#include "sched/sched_private.h"

#define HEADS_MAX 4U   // classes that are considered
#define RUNS_MAX  256U // running jobs compared with each; with more, nothing is predicted

static bool is_on_one_node(const struct allocation *allocation)
{
    return allocation->n_nodes == 1;
}

/* Could another job get the GPUs of this job, and its node? */
static bool is_open(const struct sched *sched, const struct allocation *allocation)
{
    const struct cluster_node *node = &sched->cluster.nodes[allocation->nodes[0].node];
    for (size_t i = 0; i < allocation->n_gpus; i++)
        if (!cluster_gpu_is_open(node, &node->gpus[allocation->gpus[i].gpu]))
            return false;
    return node->is_up && !node->is_drained;
}

/* The GPUs of the job with this request, if there is only one. */
static const struct allocation *find_place(const struct sched *sched, const struct sched_request *request)
{
    const struct allocation *found = NULL;
    for (size_t i = 0; i < sched->n_runs; i++) {
        const struct sched_run *run = sched->runs[i];
        const struct allocation *place = &run->allocation;
        if (!request_equal(&run->job->class->key.request, request))
            continue;
        if (!is_on_one_node(place) || run->is_giving_way)
            return NULL;
        bool is_same = found != NULL && request->gpus == 0 && found->nodes[0].node == place->nodes[0].node;
        if (found != NULL && !is_same)
            return NULL;
        found = place;
    }
    return found;
}

static bool is_taken(const struct sched_guess *guesses, size_t count, const struct allocation *place)
{
    for (size_t i = 0; i < count; i++)
        if (guesses[i].place == place)
            return true;
    return false;
}

size_t sched_guess_next(const struct sched *sched, struct sched_guess *ret, size_t max)
{
    size_t count = 0;
    if (sched->n_runs == 0 || sched->n_runs > RUNS_MAX)
        return 0;
    const struct queue_class *class = queue_first(&sched->queue);
    for (unsigned i = 0; class != NULL && i < HEADS_MAX && count < max; i++, class = queue_next(class)) {
        const struct sched_job *job = sched_find(sched, class->first->job);
        const struct sched_request *request = &class->key.request;
        bool is_plain =
            (job->rules == NULL || !job->rules->is_array) && request->nodes <= 1 && request->adopted_pid == 0;
        const struct allocation *place = is_plain ? find_place(sched, request) : NULL;
        if (place != NULL && is_open(sched, place) && !is_taken(ret, count, place))
            ret[count++] = (struct sched_guess){ class->first->job, place };
    }
    return count;
}
