/* SPDX-License-Identifier: MIT */
/*
 * The forecast part of `mgpu why`, and the cheapest change that would start the job now: each change is tried
 * on a copy of the scheduler, cheapest first, and the first that starts the job in the next pass is reported.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "sched/sched_private.h"
#include "sched/why.h"

#define FORECAST_JOBS 1000U
#define DRY_RUN       (UINT64_C(1) << 62) // id of a job that does not exist

struct trial {
    uint64_t wanted;
    bool is_started;
    struct alloc_gpu gpu; // the first it got
    bool has_gpu;
};

static uint64_t note(void *arg, uint64_t job, const struct allocation *allocation)
{
    struct trial *trial = arg;
    if (job == trial->wanted) {
        trial->is_started = true;
        trial->has_gpu = allocation->n_gpus > 0;
        if (trial->has_gpu)
            trial->gpu = allocation->gpus[0];
    }
    return job | UINT64_C(1) << 63;
}

static void ignore(void *arg, uint64_t job, const char *why)
{
    (void)arg;
    (void)job;
    (void)why;
}

/* Tries each change on the same copy: while none starts the job, nothing else in it changes. */
struct trials {
    const struct sched *sched;
    struct sched *copy;
    struct trial trial;
};

static void trials_begin(struct trials *trials, const struct sched *sched, uint64_t id)
{
    *trials = (struct trials){ .sched = sched, .trial.wanted = id };
    struct sched_callbacks callbacks = { .arg = &trials->trial, .start = note, .preempt = ignore };
    trials->copy = sched_fork(sched, sched->now_ms, FORECAST_JOBS, id, &callbacks);
}

static bool starts_with(struct trials *trials, const struct class_key *key)
{
    uint64_t id = trials->trial.wanted;
    const struct sched_job *job = sched_find(trials->sched, id);
    struct sched_job_spec spec = { .id = id, .submit_ms = job->entry.submit_ms, .key = *key };
    sched_edit(trials->copy, trials->sched->now_ms, &spec);
    sched_pass(trials->copy, trials->sched->now_ms);
    return trials->trial.is_started;
}

static void tell(const struct sched *sched, const struct trial *trial, const char *change, struct why *why)
{
    if (trial->has_gpu) {
        const struct cluster_node *node = &sched->cluster.nodes[trial->gpu.node];
        (void)snprintf(why->change, sizeof(why->change), "%s would start now, on %s:%u", change, node->name,
            node->gpus[trial->gpu.gpu].index);
    } else {
        (void)snprintf(why->change, sizeof(why->change), "%s would start now", change);
    }
    why->has_change = true;
}

/* Tries the changed key; if the job starts with it, reports and keeps it. */
static bool try_change(
    struct trials *trials, const struct class_key *key, const char *change, struct why *why)
{
    if (!starts_with(trials, key))
        return false;
    tell(trials->sched, &trials->trial, change, why);
    why->changed = *key;
    request_copy(&why->changed.request, &key->request);
    return true;
}

static bool try_fewer_gpus(struct trials *trials, const struct class_key *old, struct why *why)
{
    if (old->request.n_picks > 0 || old->request.nodes > 1 || request_is_shared(&old->request))
        return false;
    for (uint32_t gpus = old->request.gpus; gpus-- > 1;) {
        struct class_key key = *old;
        char change[32];
        key.request.gpus = gpus;
        (void)snprintf(change, sizeof(change), "-g %u", gpus);
        if (try_change(trials, &key, change, why))
            return true;
    }
    return false;
}

static bool try_any_gpu(struct trials *trials, const struct class_key *old, struct why *why)
{
    struct class_key key = *old;
    key.request.picks = NULL;
    key.request.allow = NULL;
    key.request.n_picks = key.request.n_allow = 0;
    key.request.model = NULL;
    bool is_picky = old->request.n_picks > 0 || old->request.n_allow > 0;
    if (!is_picky && old->request.model == NULL)
        return false;
    return try_change(trials, &key, is_picky ? "any GPUs instead of the named ones" : "any GPU model", why);
}

static bool try_shorter(struct trials *trials, const struct class_key *old, struct why *why)
{
    static const int64_t minutes[] = { 24 * 60, 8 * 60, 4 * 60, 2 * 60, 60, 30, 15 };
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        struct class_key key = *old;
        char change[48];
        key.limit_ms = minutes[i] * 60000;
        if (old->limit_ms != 0 && old->limit_ms <= key.limit_ms)
            continue;
        if (minutes[i] % 60 == 0)
            (void)snprintf(change, sizeof(change), "-t %lldh", (long long)(minutes[i] / 60));
        else
            (void)snprintf(change, sizeof(change), "-t %lldm", (long long)minutes[i]);
        if (try_change(trials, &key, change, why))
            return true;
    }
    return false;
}

static bool try_less_host(struct trials *trials, const struct class_key *old, struct why *why)
{
    struct class_key key = *old;
    if (old->request.cpu_milli <= 1000 && old->request.memory == 0)
        return false;
    key.request.cpu_milli = old->request.cpu_milli > 1000 ? 1000 : old->request.cpu_milli;
    key.request.memory = 0;
    return try_change(trials, &key, "fewer CPUs and less host memory (-c 1, no -M)", why);
}

static bool try_less_gpu_memory(struct trials *trials, const struct class_key *old, struct why *why)
{
    for (uint64_t bytes = old->request.gpu_mem / 2; bytes >= 1U << 30; bytes /= 2) {
        struct class_key key = *old;
        char size[32], change[48];
        key.request.gpu_mem = bytes;
        format_size(bytes, size, sizeof(size));
        (void)snprintf(change, sizeof(change), "--gpu-mem %s", size);
        if (try_change(trials, &key, change, why))
            return true;
    }
    return false;
}

static bool (*const changes[])(struct trials *trials, const struct class_key *old, struct why *why) = {
    try_any_gpu,
    try_shorter,
    try_less_host,
    try_less_gpu_memory,
    try_fewer_gpus,
};

static void find_change(const struct sched *sched, uint64_t id, struct why *why)
{
    const struct sched_job *job = sched_find(sched, id);
    struct trials trials;
    if (job->blockers != 0 || job->entry.class == NULL || job->class->is_parked)
        return;
    trials_begin(&trials, sched, id);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]) && !why->has_change; i++)
        (void)changes[i](&trials, &job->class->key, why);
    sched_free(trials.copy);
}

static void find_times(const struct sched *sched, uint64_t id, struct why *why)
{
    struct forecast likely, latest;
    forecast_run(sched, sched->now_ms, FORECAST_JOBS, id, false, &likely);
    forecast_run(sched, sched->now_ms, FORECAST_JOBS, id, true, &latest);
    why->eta_ms = forecast_find(&likely, id);
    why->latest_ms = forecast_find(&latest, id);
    why->eta_ms = why->latest_ms < why->eta_ms ? why->latest_ms : why->eta_ms; // what is certain comes first
    why_list_ahead(sched, &likely, id, why);
    forecast_clear(&likely);
    forecast_clear(&latest);
}

static void explain_dry_run(
    struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec, struct why *ret)
{
    struct trial trial = { .wanted = DRY_RUN };
    struct sched_callbacks callbacks = { .arg = &trial, .start = note, .preempt = ignore };
    struct sched *copy = sched_fork(sched, now_ms, FORECAST_JOBS, 0, &callbacks);
    struct sched_job_spec wanted = *spec;
    wanted.id = DRY_RUN;
    sched_submit(copy, now_ms, &wanted);
    sched_pass(copy, now_ms);
    if (trial.is_started)
        *ret = (struct why){ .eta_ms = now_ms, .latest_ms = now_ms };
    else
        why_explain(copy, now_ms, DRY_RUN, NULL, ret);
    sched_free(copy);
}

void why_explain(
    struct sched *sched, int64_t now_ms, uint64_t job, const struct sched_job_spec *spec, struct why *ret)
{
    if (spec != NULL) {
        explain_dry_run(sched, now_ms, spec, ret);
        return;
    }
    why_reasons(sched, now_ms, job, false, ret);
    const struct sched_job *found = sched_find(sched, job);
    if (found == NULL || found->run != NULL)
        return;
    uint32_t endless = BLOCK_HELD_ADMIN | BLOCK_HELD_USER | BLOCK_NEVER | BLOCK_DEPENDENCY;
    if ((found->blockers & endless) != 0 || (ret->n_reasons > 0 && ret->reasons[0].code == WHY_NEVER_FITS))
        return; // its end is unknown
    find_times(sched, job, ret);
    find_change(sched, job, ret);
}

void why_clear(struct why *why)
{
    request_clear(&why->changed.request);
    *why = (struct why){ 0 };
}
