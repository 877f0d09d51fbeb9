/* SPDX-License-Identifier: MIT */
/* Dependencies. A dependency is settled when the job it names is done; it is stored under that job's id. */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define BUCKETS_MIN 64U

static struct dependent **bucket_of(const struct sched *sched, uint64_t job)
{
    return &sched->dependents[(job * 0x9e3779b97f4a7c15ULL >> 20) % sched->n_dependent_buckets];
}

static void grow(struct sched *sched)
{
    struct dependent **old = sched->dependents;
    size_t n_old = sched->n_dependent_buckets;
    sched->n_dependent_buckets = n_old == 0 ? BUCKETS_MIN : n_old * 2;
    sched->dependents = xcalloc(sched->n_dependent_buckets, sizeof(struct dependent *));
    for (size_t i = 0; i < n_old; i++) {
        while (old[i] != NULL) {
            struct dependent *dependent = old[i];
            old[i] = dependent->chain;
            struct dependent **bucket = bucket_of(sched, dependent->job);
            dependent->chain = *bucket;
            *bucket = dependent;
        }
    }
    free(old);
}

void sched_depend(struct sched *sched, struct sched_job *job)
{
    const struct job_rules *rules = job->rules;
    for (size_t i = 0; rules != NULL && i < rules->n_after; i++) {
        if (sched->n_dependents >= sched->n_dependent_buckets)
            grow(sched);
        struct dependent *dependent = xcalloc(1, sizeof(*dependent));
        struct dependent **bucket = bucket_of(sched, rules->after[i].job);
        *dependent = (struct dependent){ rules->after[i].job, job->entry.job, rules->after[i].kind, *bucket };
        *bucket = dependent;
        sched->n_dependents++;
        job->blockers |= BLOCK_DEPENDENCY;
    }
}

/* Takes the dependents of `job` out that wait as `waiting` (0: all); each is the visitor's. */
static struct dependent *take_out(struct sched *sched, uint64_t job, uint64_t waiting)
{
    struct dependent *taken = NULL;
    if (sched->n_dependent_buckets == 0)
        return NULL;
    struct dependent **chain = bucket_of(sched, job);
    while (*chain != NULL) {
        struct dependent *dependent = *chain;
        if (dependent->job != job || (waiting != 0 && dependent->waiting != waiting)) {
            chain = &dependent->chain;
            continue;
        }
        *chain = dependent->chain;
        dependent->chain = taken;
        taken = dependent;
        sched->n_dependents--;
    }
    return taken;
}

static void free_all(struct dependent *dependent)
{
    while (dependent != NULL) {
        struct dependent *next = dependent->chain;
        free(dependent);
        dependent = next;
    }
}

void sched_depend_no_more(struct sched *sched, struct sched_job *job)
{
    struct job_rules *rules = job->rules;
    if (rules == NULL)
        return;
    for (size_t i = 0; i < rules->n_after; i++)
        free_all(take_out(sched, rules->after[i].job, job->entry.job));
    rules->n_after = 0;
    job->blockers &= ~(uint32_t)(BLOCK_DEPENDENCY | BLOCK_NEVER);
}

static void forget_dependency(struct job_rules *rules, uint64_t job)
{
    size_t kept = 0;
    for (size_t i = 0; i < rules->n_after; i++)
        if (rules->after[i].job != job)
            rules->after[kept++] = rules->after[i];
    rules->n_after = kept;
}

static void give_up(struct sched *sched, struct sched_job *job)
{
    job->blockers |= BLOCK_NEVER;
    if (sched->callbacks.never != NULL)
        sched->callbacks.never(sched->callbacks.arg, job->entry.job);
}

/* What `job` waits for has come true, or can never come true. */
static void settle_one(struct sched *sched, struct sched_job *job, uint64_t id, bool is_true)
{
    struct job_rules *rules = job->rules;
    bool is_any = rules->n_after > 0 && rules->after[0].is_any;
    if (!is_true && (!is_any || rules->n_after == 1)) {
        give_up(sched, job);
        return;
    }
    if (is_true && is_any)
        sched_depend_no_more(sched, job);
    else
        forget_dependency(rules, id);
    if (rules->n_after > 0 && !is_true)
        return;
    if (rules->n_after == 0)
        job->blockers &= ~(uint32_t)BLOCK_DEPENDENCY;
    sched_place_in_queue(sched, job);
}

static void put_back(struct sched *sched, struct dependent *dependent)
{
    struct dependent **bucket = bucket_of(sched, dependent->job);
    dependent->chain = *bucket;
    *bucket = dependent;
    sched->n_dependents++;
}

static struct ask_after *find_after(struct sched_job *job, uint64_t id)
{
    for (size_t i = 0; i < job->rules->n_after; i++)
        if (job->rules->after[i].job == id)
            return &job->rules->after[i];
    return NULL;
}

/* A dependency on the start of `id`, which was at `since_ms`, waits on for its delay. */
static bool is_delayed(struct sched *sched, struct sched_job *job, uint64_t id, int64_t since_ms)
{
    struct ask_after *after = find_after(job, id);
    if (after == NULL || after->kind != AFTER_START || after->delay_ms == 0)
        return false;
    if (after->due_ms == 0)
        after->due_ms = since_ms + after->delay_ms;
    if (after->due_ms <= sched->now_ms)
        return false;
    sched_set_job_timer(sched, job);
    return true;
}

/* Settles those dependents of `id` that wait for its start, with `has_ended` all of them. */
static void settle_all(struct sched *sched, uint64_t id, int64_t since_ms, bool has_ended, bool is_ok)
{
    struct dependent *taken = take_out(sched, id, 0), *next = NULL;
    for (struct dependent *dependent = taken; dependent != NULL; dependent = next) {
        struct sched_job *job = sched_find(sched, dependent->waiting);
        bool is_waiting = job != NULL && job->rules != NULL;
        next = dependent->chain;
        if ((!has_ended && dependent->kind != AFTER_START) ||
            (is_waiting && is_delayed(sched, job, id, since_ms))) {
            put_back(sched, dependent);
            continue;
        }
        if (is_waiting)
            settle_one(sched, job, id, after_comes_true(dependent->kind, is_ok));
        free(dependent);
    }
}

void sched_settle(struct sched *sched, int64_t now_ms, uint64_t id, bool is_ok)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    settle_all(sched, id, sched->now_ms, true, is_ok);
}

void sched_began(struct sched *sched, int64_t now_ms, uint64_t id, int64_t since_ms)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    settle_all(sched, id, since_ms, false, true);
}

int64_t sched_depend_due_ms(const struct job_rules *rules)
{
    int64_t due_ms = TIME_NEVER;
    for (size_t i = 0; i < rules->n_after; i++)
        if (rules->after[i].due_ms != 0 && rules->after[i].due_ms < due_ms)
            due_ms = rules->after[i].due_ms;
    return due_ms;
}

bool sched_depend_is_due(const struct job_rules *rules, int64_t now_ms)
{
    size_t count = 0;
    for (size_t i = 0; i < rules->n_after; i++)
        count += rules->after[i].due_ms != 0 && rules->after[i].due_ms <= now_ms;
    return count > 0 && (rules->after[0].is_any || count == rules->n_after);
}

void sched_depend_due(struct sched *sched, struct sched_job *job)
{
    for (size_t i = 0; job->rules != NULL && i < job->rules->n_after; i++) {
        const struct ask_after after = job->rules->after[i];
        if (after.due_ms == 0 || after.due_ms > sched->now_ms)
            continue;
        free_all(take_out(sched, after.job, job->entry.job));
        settle_one(sched, job, after.job, true);
        i = (size_t)-1; // the list is another one
    }
}

static bool is_open(const struct sched *sched, uint64_t job, uint64_t awaited)
{
    const struct dependent *dependent = sched->n_dependent_buckets > 0 ? *bucket_of(sched, awaited) : NULL;
    while (dependent != NULL && (dependent->job != awaited || dependent->waiting != job))
        dependent = dependent->chain;
    return dependent != NULL;
}

enum sched_wait sched_wait_of(const struct sched *sched, uint64_t id, uint64_t awaited)
{
    const struct sched_job *job = sched_find(sched, id);
    size_t n_after = job != NULL && job->rules != NULL ? job->rules->n_after : 0;
    for (size_t i = 0; i < n_after; i++)
        if (job->rules->after[i].job == awaited)
            return is_open(sched, id, awaited) ? SCHED_WAIT_OPEN : SCHED_WAIT_NEVER;
    return SCHED_WAIT_TRUE;
}

void sched_depend_clear(struct sched *sched)
{
    for (size_t i = 0; i < sched->n_dependent_buckets; i++)
        free_all(sched->dependents[i]);
    free(sched->dependents);
    sched->dependents = NULL;
    sched->n_dependents = sched->n_dependent_buckets = 0;
}
