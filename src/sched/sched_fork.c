/* SPDX-License-Identifier: MIT */
/*
 * A copy for "what if" questions: the same cluster, running jobs, accounts and reservations, and the first
 * waiting jobs. It reads the original's history and learns nothing.
 *
 * With thousands of nodes and running jobs a copy takes longer than other work can wait, so it is made in
 * parts: accounts, nodes, running jobs, waiting jobs. Nodes and running jobs must be consistent. If an
 * allocation or a node changes before all of them are copied, the copy is made again; the last try is not
 * interrupted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define PART_NODES 64U
#define PART_RUNS  256U
#define TRIES_MAX  3U

static void copy_gpu(
    struct cluster *to, struct cluster_node *node, const struct cluster *from, const struct cluster_gpu *gpu)
{
    struct cluster_gpu *copy = cluster_set_gpu(
        to, node, gpu->index, gpu->uuid, from->models[gpu->model], gpu->memory_bytes, gpu->is_present);
    copy->is_known = gpu->is_known;
    copy->is_paused = gpu->is_paused;
    copy->closed = gpu->closed;
    copy->has_external = gpu->has_external;
    copy->memory_external = gpu->memory_external;
    copy->adoptee = gpu->adoptee;
    copy->numa = gpu->numa;
    copy->pcie_switch = gpu->pcie_switch;
    copy->links = gpu->links;
}

/* The nodes from `first` on, at most `max`. */
static void copy_nodes(struct cluster *to, const struct cluster *from, size_t first, size_t max)
{
    for (size_t i = first; i < from->n_nodes && i - first < max; i++) {
        const struct cluster_node *node = &from->nodes[i];
        struct cluster_node *copy = cluster_set_node(to, node->name, node->cpu_milli, node->memory);
        for (size_t k = 0; k < node->n_gpus; k++)
            copy_gpu(to, copy, from, &node->gpus[k]);
        copy->is_up = node->is_up;
        copy->is_described = node->is_described;
        copy->is_drained = node->is_drained;
        copy->shares = node->shares;
        if (node->cpu_kept != 0 || node->memory_kept != 0)
            cluster_keep(to, copy, node->cpu_kept, node->memory_kept);
        cluster_touch(to, copy);
        if (node->is_gone)
            cluster_remove_node(to, node->name);
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
        copy->had_turn = account->had_turn;
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
    rules->elements_running = job->rules->elements_running;
}

/* Keeps the estimates: with many running jobs, computing them took most of the time of a fork. */
static void copy_runs(struct sched *to, const struct sched *from, size_t first, size_t max)
{
    for (size_t i = first; i < from->n_runs && i - first < max; i++) {
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

/* --- in parts --- */

struct sched_copying {
    const struct sched *from;
    struct sched *copy;
    struct sched_callbacks callbacks;
    int64_t now_ms;
    size_t max_jobs;
    uint64_t always;
    uint64_t version; // of the original's cluster when this try began
    unsigned tries;
    size_t n_nodes, n_runs; // copied
};

static void begin_try(struct sched_copying *copying)
{
    const struct sched *from = copying->from;
    struct sched *copy = sched_new(&from->settings, &copying->callbacks);
    history_free(copy->history);
    copy->history = from->history;
    copy->is_fork = true;
    cluster_limit_starts(&copy->cluster, 0); // a copy receives no reports of started commands
    copy->now_ms = copying->now_ms > from->now_ms ? copying->now_ms : from->now_ms;
    cluster_postpone(&copy->cluster);
    cluster_set_partitions(&copy->cluster, from->cluster.partitions, from->cluster.n_partitions);
    copy_accounts(&copy->fairshare, &from->fairshare, copy->now_ms);
    copy->is_head_start_due = from->is_head_start_due;
    copying->copy = copy;
    copying->version = from->cluster.version;
    copying->tries++;
    copying->n_nodes = copying->n_runs = 0;
}

struct sched_copying *sched_fork_begin(const struct sched *sched, int64_t now_ms, size_t max_jobs,
    uint64_t always, const struct sched_callbacks *callbacks)
{
    struct sched_copying *copying = xcalloc(1, sizeof(*copying));
    *copying = (struct sched_copying){
        .from = sched, .callbacks = *callbacks, .now_ms = now_ms, .max_jobs = max_jobs, .always = always
    };
    begin_try(copying);
    return copying;
}

/* The remaining steps after all nodes and running jobs are copied. */
static void complete(struct sched_copying *copying)
{
    const struct sched *from = copying->from;
    struct sched *copy = copying->copy;
    if (from->known.n_nodes > from->cluster.n_nodes) { // some have not reported yet: to be mentioned
        cluster_set_partitions(&copy->known, from->known.partitions, from->known.n_partitions);
        copy_nodes(&copy->known, &from->known, 0, SIZE_MAX);
    }
    cluster_catch_up(&copy->cluster);
    sched_bars_copy(copy, from);
    sched_calendar_copy(copy, from);
    copy_waiting(copy, from, copying->max_jobs, copying->always);
}

static bool copy_part(struct sched_copying *copying, size_t max_nodes, size_t max_runs)
{
    const struct sched *from = copying->from;
    if (copying->n_nodes < from->cluster.n_nodes) {
        copy_nodes(&copying->copy->cluster, &from->cluster, copying->n_nodes, max_nodes);
        copying->n_nodes += max_nodes;
        return false;
    }
    if (copying->n_runs < from->n_runs) {
        copy_runs(copying->copy, from, copying->n_runs, max_runs);
        copying->n_runs += max_runs;
        return false;
    }
    complete(copying);
    return true;
}

bool sched_fork_advance(struct sched_copying *copying)
{
    if (copying->version == copying->from->cluster.version)
        return copy_part(copying, PART_NODES, PART_RUNS);
    sched_free(copying->copy);
    begin_try(copying);
    if (copying->tries < TRIES_MAX)
        return false;
    copy_nodes(&copying->copy->cluster, &copying->from->cluster, 0, SIZE_MAX);
    copy_runs(copying->copy, copying->from, 0, SIZE_MAX);
    complete(copying);
    return true;
}

struct sched *sched_fork_end(struct sched_copying *copying)
{
    struct sched *copy = copying->copy;
    free(copying);
    return copy;
}

struct sched *sched_fork(const struct sched *sched, int64_t now_ms, size_t max_jobs, uint64_t always,
    const struct sched_callbacks *callbacks)
{
    struct sched_copying *copying = sched_fork_begin(sched, now_ms, max_jobs, always, callbacks);
    while (!sched_fork_advance(copying))
        continue;
    return sched_fork_end(copying);
}
