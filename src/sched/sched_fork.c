/* SPDX-License-Identifier: MIT */
/*
 * A copy for "what if" questions: the same cluster, running jobs, accounts and reservations, and the first
 * waiting jobs. It reads the original's history and learns nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"

static void copy_gpu(
    struct cluster *to, struct cluster_node *node, const struct cluster *from, const struct cluster_gpu *gpu)
{
    struct cluster_gpu *copy = cluster_set_gpu(
        to, node, gpu->index, gpu->uuid, from->models[gpu->model], gpu->memory_bytes, gpu->is_present);
    copy->is_known = gpu->is_known;
    copy->is_paused = gpu->is_paused;
    copy->closed = gpu->closed;
    copy->memory_external = gpu->memory_external;
    copy->adoptee = gpu->adoptee;
    copy->numa = gpu->numa;
    copy->pcie_switch = gpu->pcie_switch;
    copy->links = gpu->links;
}

static void copy_cluster(struct cluster *to, const struct cluster *from)
{
    cluster_set_partitions(to, from->partitions, from->n_partitions);
    for (size_t i = 0; i < from->n_nodes; i++) {
        const struct cluster_node *node = &from->nodes[i];
        struct cluster_node *copy = cluster_set_node(to, node->name, node->cpu_milli, node->memory);
        for (size_t k = 0; k < node->n_gpus; k++)
            copy_gpu(to, copy, from, &node->gpus[k]);
        copy->is_up = node->is_up;
        copy->is_described = node->is_described;
        copy->is_drained = node->is_drained;
        copy->shares = node->shares;
        cluster_touch(to, copy);
    }
}

static void copy_accounts(struct fairshare *to, const struct fairshare *from, int64_t now_ms)
{
    to->has_group_shares = from->has_group_shares;
    for (const struct account *account = from->first; account != NULL; account = account->next) {
        struct account *copy = fairshare_account(to, account->id, account->kind);
        copy->shares = account->shares;
        copy->limits = account->limits;
        copy->factor = account->factor;
        copy->usage = fairshare_usage(from, account, now_ms);
        copy->charged = fairshare_charged(from, account, now_ms);
        copy->at_ms = now_ms;
    }
    /* Departments have the usage of their groups already. */
    for (const struct account *account = from->first; account != NULL; account = account->next)
        if (account->parent != NULL)
            fairshare_account(to, account->id, account->kind)->parent =
                fairshare_account(to, account->parent->id, account->parent->kind);
}

static void spec_of(const struct sched_job *job, struct sched_job_spec *ret)
{
    const struct job_rules *rules = job->rules;
    *ret = (struct sched_job_spec){
        .id = job->entry.job,
        .submit_ms = job->entry.submit_ms,
        .key = job->class->key,
        .hold = job->blockers & (BLOCK_HELD_USER | BLOCK_HELD_ADMIN),
    };
    if (rules == NULL)
        return;
    ret->begin_ms = rules->begin_ms;
    ret->is_array = rules->is_array;
    ret->elements = rules->elements;
    ret->element_limit = rules->element_limit;
    ret->elements_open = rules->elements_open;
    ret->array = rules->array;
}

static void copy_work(struct sched *to, const struct sched_job *job)
{
    if (job->rules == NULL)
        return;
    struct job_rules *rules = sched_rules(sched_find(to, job->entry.job));
    rules->done_ms = job->rules->done_ms;
    rules->attained = job->rules->attained;
    rules->preemptions = job->rules->preemptions;
}

/* Without estimating anew: with many running jobs that was most of the time of a fork. */
static void copy_runs(struct sched *to, const struct sched *from)
{
    for (size_t i = 0; i < from->n_runs; i++) {
        const struct sched_run *run = from->runs[i];
        struct sched_job_spec spec;
        spec_of(run->job, &spec);
        spec.hold = 0;
        struct sched_job *job = sched_add_job(to, &spec);
        copy_work(to, run->job);
        sched_run_copy(to, job, from, run);
        sched_idle(to, from->now_ms, spec.id, run->is_idle);
    }
}

static void copy_job(struct sched *to, const struct sched *from, const struct sched_job *job)
{
    struct sched_job_spec spec;
    if (sched_find(to, job->entry.job) != NULL)
        return;
    spec_of(job, &spec);
    spec.hold = 0;
    sched_submit(to, from->now_ms, &spec);
    copy_work(to, job);
    if ((job->blockers & BLOCK_BACKOFF) != 0)
        sched_block(to, from->now_ms, spec.id, BLOCK_BACKOFF, 0, job->rules->backoff_ms);
}

static size_t copy_class(struct sched *to, const struct sched *from, const struct queue_class *class,
    size_t copied, size_t max_jobs)
{
    for (const struct queue_entry *entry = class->first; entry != NULL && copied < max_jobs;
         entry = entry->after) {
        copy_job(to, from, sched_find(from, entry->job));
        copied++;
    }
    return copied;
}

/* Jobs that are not in the tree but will be without further input: at limits, before their begin time, after
 * a failure. */
static void copy_kept_back(struct sched *to, const struct sched *from, size_t copied, size_t max_jobs)
{
    for (const struct account *account = from->fairshare.first; account != NULL; account = account->next)
        for (const struct queue_class *class = account->parked; class != NULL; class = class->parked_next)
            copied = copy_class(to, from, class, copied, max_jobs);
    for (size_t i = 0; i < from->n_runs && copied < max_jobs; i++) {
        const struct job_rules *rules = from->runs[i]->job->rules;
        const struct sched_job *array =
            rules != NULL && rules->array != 0 ? sched_find(from, rules->array) : NULL;
        bool is_kept_back = array != NULL && array->blockers == 0 && array->entry.class == NULL;
        if (is_kept_back && sched_find(to, array->entry.job) == NULL) {
            copy_job(to, from, array);
            copied++;
        }
    }
    for (size_t i = 0; i < from->timers.count && copied < max_jobs; i++) {
        const struct sched_job *job = timers_owner(&from->timers, i, TIMER_JOB);
        if (job == NULL || (job->blockers & ~(uint32_t)(BLOCK_BEGIN | BLOCK_BACKOFF)) != 0)
            continue;
        copy_job(to, from, job);
        copied++;
    }
}

static void copy_waiting(struct sched *to, const struct sched *from, size_t max_jobs, uint64_t always)
{
    const struct sched_job *job = always != 0 ? sched_find(from, always) : NULL;
    size_t copied = 0;
    if (job != NULL && job->run == NULL)
        copy_job(to, from, job);
    for (const struct queue_class *class = queue_first(&from->queue); class != NULL && copied < max_jobs;
         class = queue_next(class))
        copied = copy_class(to, from, class, copied, max_jobs);
    copy_kept_back(to, from, copied, max_jobs);
}

struct sched *sched_fork(const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always,
    const struct sched_callbacks *callbacks)
{
    struct sched *copy = sched_new(&sched->settings, callbacks);
    history_free(copy->history);
    copy->history = sched->history;
    copy->is_fork = true;
    copy->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    cluster_postpone(&copy->cluster);
    copy_cluster(&copy->cluster, &sched->cluster);
    if (sched->known.n_nodes > sched->cluster.n_nodes) // some have not reported yet, which is to be mentioned
        copy_cluster(&copy->known, &sched->known);
    copy_accounts(&copy->fairshare, &sched->fairshare, copy->now_ms);
    copy_runs(copy, sched);
    cluster_catch_up(&copy->cluster);
    sched_calendar_copy(copy, sched);
    copy_waiting(copy, sched, max_jobs, always);
    return copy;
}
