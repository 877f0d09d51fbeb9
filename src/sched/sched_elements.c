/* SPDX-License-Identifier: MIT */
/*
 * Arrays with a limit of running elements. The array starts an element only while fewer than that are open,
 * that is, split off and not over. Elements that were split off by request (held, edited, or paired with
 * those of another array) wait as separate jobs: they stay out of the queue while the maximum runs.
 */
#include "sched/sched_private.h"

static struct sched_job *find_array(const struct sched *sched, uint64_t id)
{
    struct sched_job *array = id != 0 ? sched_find(sched, id) : NULL;
    return array != NULL && array->rules != NULL && array->rules->is_array ? array : NULL;
}

static struct sched_job *array_of(const struct sched *sched, const struct sched_job *job)
{
    return job->rules != NULL ? find_array(sched, job->rules->array) : NULL;
}

bool sched_element_may_start(const struct sched *sched, const struct sched_job *job)
{
    const struct sched_job *array = array_of(sched, job);
    return array == NULL || array->rules->element_limit == 0 ||
           array->rules->elements_running < array->rules->element_limit;
}

bool sched_array_is_next(const struct sched *sched, uint64_t id)
{
    const struct sched_job *array = find_array(sched, id);
    const struct queue_class *first = queue_first(sched_queue(sched));
    if (array == NULL || array->blockers != 0 || array->rules->elements == 0)
        return false;
    const struct queue_class *own = array->class;
    if (array->rules->is_at_limit) // it is not in the queue
        return first == NULL && sched_limit_is_own(own, NULL);
    if (own->first == NULL || own->first->job != id || (first != NULL && first != own))
        return false;
    bool is_alone = first == NULL || queue_next(own) == NULL;
    return sched_place(sched, id) == 1 || (is_alone && sched_limit_is_own(own, own));
}

void sched_element_kept(struct sched *sched, const struct sched_job *job)
{
    struct sched_job *array = array_of(sched, job);
    if (array != NULL)
        array->rules->has_kept = true;
}

void sched_element_begins(struct sched *sched, const struct sched_job *job)
{
    struct sched_job *array = array_of(sched, job);
    if (array != NULL)
        array->rules->elements_running++;
}

void sched_array_freed(struct sched *sched, struct sched_job *array)
{
    if (!array->rules->has_kept)
        return;
    array->rules->has_kept = false;
    for (size_t i = 0; i < sched->jobs.n_buckets; i++) {
        for (struct map_link *at = sched->jobs.buckets[i]; at != NULL; at = at->next) {
            struct sched_job *job = sched_job_at(at);
            if (job->rules != NULL && job->rules->array == array->entry.job && job->run == NULL)
                sched_place_in_queue(sched, job);
        }
    }
}

void sched_element_stops(struct sched *sched, uint64_t id)
{
    struct sched_job *array = find_array(sched, id);
    if (array == NULL)
        return;
    if (array->rules->elements_running > 0)
        array->rules->elements_running--;
    sched_array_freed(sched, array);
}

void sched_element_over(struct sched *sched, uint64_t id)
{
    struct sched_job *array = find_array(sched, id);
    if (array == NULL)
        return;
    if (array->rules->elements_open > 0)
        array->rules->elements_open--;
    if (array->rules->elements == 0 && array->rules->elements_open == 0)
        sched_remove_job(sched, array);
    else
        sched_place_in_queue(sched, array);
}
