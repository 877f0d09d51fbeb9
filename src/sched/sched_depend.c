/* SPDX-License-Identifier: MIT */
/* Dependencies. A dependency is decided when the job it names is done; it is stored under that job's id. */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/sched_private.h"

static struct dependent *dependent_at(const struct map_link *link)
{
    return MAP_ITEM(link, struct dependent, link);
}

static uint64_t hash_of(const struct map_link *link)
{
    return map_hash(dependent_at(link)->job);
}

void sched_depend(struct sched *sched, struct sched_job *job)
{
    const struct job_rules *rules = job->rules;
    for (size_t i = 0; rules != NULL && i < rules->n_after; i++) {
        struct dependent *dependent = xcalloc(1, sizeof(*dependent));
        *dependent = (struct dependent){
            .job = rules->after[i].job, .waiting = job->entry.job, .kind = rules->after[i].kind
        };
        map_add(&sched->dependents, &dependent->link, hash_of);
        job->blockers |= BLOCK_DEPENDENCY;
    }
}

/* Removes the dependents of `job` that wait as `waiting` (0: all); the visitor owns each. */
static struct dependent *take_out(struct sched *sched, uint64_t job, uint64_t waiting)
{
    struct dependent *taken = NULL;
    struct map_link *next = NULL;
    for (struct map_link *link = map_chain(&sched->dependents, map_hash(job)); link != NULL; link = next) {
        struct dependent *dependent = dependent_at(link);
        next = link->next;
        if (dependent->job != job || (waiting != 0 && dependent->waiting != waiting))
            continue;
        map_remove(&sched->dependents, link, hash_of);
        dependent->next = taken;
        taken = dependent;
    }
    return taken;
}

static void free_all(struct dependent *dependent)
{
    while (dependent != NULL) {
        struct dependent *next = dependent->next;
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

/* The dependency of `job` is satisfied, or can never be satisfied. */
static void resolve_one(struct sched *sched, struct sched_job *job, uint64_t id, bool is_true)
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
    map_add(&sched->dependents, &dependent->link, hash_of);
}

static struct ask_after *find_after(struct sched_job *job, uint64_t id)
{
    for (size_t i = 0; i < job->rules->n_after; i++)
        if (job->rules->after[i].job == id)
            return &job->rules->after[i];
    return NULL;
}

/* A dependency on the start of `id`, at `since_ms`, continues to wait for its delay. */
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

/* Resolves the dependents of `id` that wait for its start; with `has_ended`, all of them. */
static void resolve_all(struct sched *sched, uint64_t id, int64_t since_ms, bool has_ended, bool is_ok)
{
    struct dependent *taken = take_out(sched, id, 0), *next = NULL;
    for (struct dependent *dependent = taken; dependent != NULL; dependent = next) {
        struct sched_job *job = sched_find(sched, dependent->waiting);
        bool is_waiting = job != NULL && job->rules != NULL;
        next = dependent->next;
        if ((!has_ended && dependent->kind != AFTER_START) ||
            (is_waiting && is_delayed(sched, job, id, since_ms))) {
            put_back(sched, dependent);
            continue;
        }
        if (is_waiting)
            resolve_one(sched, job, id, after_comes_true(dependent->kind, is_ok));
        free(dependent);
    }
}

void sched_resolve_dependents(struct sched *sched, int64_t now_ms, uint64_t id, bool is_ok)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    resolve_all(sched, id, sched->now_ms, true, is_ok);
}

void sched_began(struct sched *sched, int64_t now_ms, uint64_t id, int64_t since_ms)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    resolve_all(sched, id, since_ms, false, true);
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
        resolve_one(sched, job, after.job, true);
        i = (size_t)-1; // the list was replaced
    }
}

static bool is_open(const struct sched *sched, uint64_t job, uint64_t awaited)
{
    const struct map_link *link = map_chain(&sched->dependents, map_hash(awaited));
    while (link != NULL && (dependent_at(link)->job != awaited || dependent_at(link)->waiting != job))
        link = link->next;
    return link != NULL;
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

static void release(struct map_link *link)
{
    free(dependent_at(link));
}

void sched_depend_clear(struct sched *sched)
{
    map_clear(&sched->dependents, release);
}
