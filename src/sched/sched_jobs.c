/* SPDX-License-Identifier: MIT */
/*
 * The scheduler's jobs and the blockers that keep them out of the queue: holds, begin times, back-off,
 * dependencies, and for arrays the number of running elements. A job with none of these is in its class.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"

struct sched_job *sched_job_at(const struct map_link *link)
{
    return MAP_ITEM(link, struct sched_job, link);
}

static uint64_t hash_of(const struct map_link *link)
{
    return map_hash(sched_job_at(link)->entry.job);
}

struct sched_job *sched_find(const struct sched *sched, uint64_t id)
{
    const struct map_link *link = map_chain(&sched->jobs, map_hash(id));
    while (link != NULL && sched_job_at(link)->entry.job != id)
        link = link->next;
    return link != NULL ? sched_job_at(link) : NULL;
}

struct job_rules *sched_rules(struct sched_job *job)
{
    if (job->rules == NULL)
        job->rules = xcalloc(1, sizeof(*job->rules));
    return job->rules;
}

void sched_take_rules(struct sched_job *job, const struct sched_job_spec *spec)
{
    bool is_plain = spec->begin_ms == 0 && spec->deadline_ms == 0 && spec->n_after == 0 && !spec->is_array &&
                    spec->array == 0;
    if (is_plain && job->rules == NULL)
        return;
    struct job_rules *rules = sched_rules(job);
    rules->begin_ms = spec->begin_ms;
    rules->deadline_ms = spec->deadline_ms;
    rules->is_array = spec->is_array;
    rules->elements = spec->elements;
    rules->element_limit = spec->element_limit;
    rules->elements_open = spec->elements_open;
    rules->array = spec->array;
    free(rules->after);
    rules->after = NULL;
    rules->n_after = spec->n_after;
    if (spec->n_after == 0)
        return;
    rules->after = xcalloc(spec->n_after, sizeof(*rules->after));
    memcpy(rules->after, spec->after, spec->n_after * sizeof(*rules->after));
}

struct sched_job *sched_add_job(struct sched *sched, const struct sched_job_spec *spec)
{
    struct sched_job *job = xcalloc(1, sizeof(*job));
    job->entry.job = spec->id;
    job->entry.submit_ms = spec->submit_ms;
    map_add(&sched->jobs, &job->link, hash_of);
    sched_join_class(sched, job, &spec->key);
    job->blockers = spec->hold;
    sched_take_rules(job, spec);
    if (spec->preemptions > 0)
        sched_rules(job)->preemptions = spec->preemptions;
    sched_parked_take(sched, job, spec);
    sched_depend(sched, job);
    return job;
}

void sched_job_free(struct map_link *link)
{
    struct sched_job *job = sched_job_at(link);
    if (job->rules != NULL) {
        free(job->rules->after);
        sched_parked_free(job->rules);
    }
    free(job->rules);
    free(job);
}

void sched_remove_job(struct sched *sched, struct sched_job *job)
{
    sched_leave_queue(sched, job);
    sched_parked_forget(sched, job);
    sched_depend_no_more(sched, job);
    map_remove(&sched->jobs, &job->link, hash_of);
    sched_leave_class(sched, job);
    if (job->rules != NULL)
        timers_set(&sched->timers, TIME_NEVER, TIMER_JOB, job, &job->rules->timer);
    sched_job_free(&job->link);
}

static void count_waiting(struct sched *sched, const struct queue_class *class, int32_t change)
{
    fairshare_count(&sched->fairshare, class->account, sched->now_ms, 0, change);
    fairshare_count(&sched->fairshare, class->group, sched->now_ms, 0, change);
}

static bool may_wait_in_queue(const struct sched *sched, const struct sched_job *job)
{
    const struct job_rules *rules = job->rules;
    if (job->blockers != 0 || job->run != NULL)
        return false;
    if (rules != NULL && rules->is_array)
        return rules->elements > 0 && !rules->is_at_limit;
    return sched_element_may_start(sched, job);
}

void sched_place_in_queue(struct sched *sched, struct sched_job *job)
{
    struct job_rules *rules = job->rules;
    if (rules != NULL && rules->is_array)
        rules->is_at_limit = rules->element_limit > 0 && rules->elements_open >= rules->element_limit;
    if (!sched_element_may_start(sched, job))
        sched_element_kept(sched, job);
    if (!may_wait_in_queue(sched, job)) {
        sched_leave_queue(sched, job);
        return;
    }
    if (job->entry.class != NULL)
        return;
    struct queue_class *class = job->class;
    if (class->first == NULL)
        sched_rank_class(sched, class, job->entry.submit_ms);
    const struct queue_entry *head = class->first;
    count_waiting(sched, class, 1);
    queue_add(&sched->queue, &job->entry, class);
    if (head != NULL && class->first != head)
        sched_rank_head(sched, class);
    /* Another job of a class that did not fit changes nothing, unless together they fill the GPUs of a wide
     * job to be parked for them. */
    sched->is_dirty |= class->is_fresh || (sched_parks(sched) && class->length <= GUEST_HEADS);
}

void sched_leave_queue(struct sched *sched, struct sched_job *job)
{
    struct queue_class *class = job->entry.class;
    if (class == NULL)
        return;
    bool was_head = class->first == &job->entry;
    queue_remove(&sched->queue, &job->entry);
    count_waiting(sched, class, -1);
    if (class->length == 0) {
        /* The next one is tried again; holds for the one that left are released. */
        class->is_fresh = true;
        sched_own_changed(sched, class);
        timers_set(&sched->timers, TIME_NEVER, TIMER_CLASS, class, &class->timer);
    } else if (was_head) {
        sched_rank_head(sched, class);
    }
    sched_begin_turns(sched);
    sched->is_dirty |= sched->n_holds > 0 || sched->settings.policy->backfill == BACKFILL_NONE;
}

void sched_set_job_timer(struct sched *sched, struct sched_job *job)
{
    struct job_rules *rules = job->rules;
    if (rules == NULL)
        return;
    int64_t at = TIME_NEVER;
    if (rules->begin_ms > sched->now_ms) {
        job->blockers |= BLOCK_BEGIN;
        at = rules->begin_ms;
    } else {
        job->blockers &= ~(uint32_t)BLOCK_BEGIN;
    }
    if ((job->blockers & BLOCK_BACKOFF) != 0 && rules->backoff_ms < at)
        at = rules->backoff_ms;
    int64_t due_ms = sched_depend_due_ms(rules);
    at = due_ms < at ? due_ms : at;
    timers_set(&sched->timers, at, TIMER_JOB, job, &rules->timer);
}

void sched_job_timer(struct sched *sched, struct sched_job *job)
{
    if ((job->blockers & BLOCK_BACKOFF) != 0 && job->rules->backoff_ms <= sched->now_ms)
        job->blockers &= ~(uint32_t)BLOCK_BACKOFF;
    sched_depend_due(sched, job);
    sched_set_job_timer(sched, job);
    sched_place_in_queue(sched, job);
}
