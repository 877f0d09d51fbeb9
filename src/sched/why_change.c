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
    const struct cluster *cluster;
    char where[80]; // the GPUs that it got: "n1:0,1 n2:0"; empty: none
};

static void name_gpus(struct trial *trial, const struct allocation *allocation)
{
    size_t used = 0, size = sizeof(trial->where);
    for (size_t i = 0; i < allocation->n_gpus && used < size; i++) {
        const struct alloc_gpu *gpu = &allocation->gpus[i];
        const struct cluster_node *node = &trial->cluster->nodes[gpu->node];
        bool is_same = i > 0 && allocation->gpus[i - 1].node == gpu->node;
        int length = is_same ? snprintf(trial->where + used, size - used, ",%u", node->gpus[gpu->gpu].index)
                             : snprintf(trial->where + used, size - used, "%s%s:%u", i > 0 ? " " : "",
                                   node->name, node->gpus[gpu->gpu].index);
        used += length > 0 ? (size_t)length : 0;
    }
    if (used >= size)
        (void)snprintf(trial->where + size - 4, 4, "...");
}

static uint64_t note(void *arg, uint64_t job, const struct allocation *allocation)
{
    struct trial *trial = arg;
    if (job == trial->wanted) {
        trial->is_started = true;
        name_gpus(trial, allocation);
    }
    return job | UINT64_C(1) << 63;
}

static void ignore(void *arg, uint64_t job, const char *why)
{
}

/* Tries each change on the same copy: while none starts the job, nothing else in it changes. */
struct trials {
    const struct sched *sched;
    struct sched_copying *copying; // while the copy is being made
    struct sched *copy;            // then
    struct trial trial;
};

static void trials_begin(struct trials *trials, const struct sched *sched, uint64_t id)
{
    *trials = (struct trials){ .sched = sched, .trial.wanted = id, .trial.cluster = &sched->cluster };
    struct sched_callbacks callbacks = { .arg = &trials->trial, .start = note, .preempt = ignore };
    trials->copying = sched_fork_begin(sched, sched->now_ms, FORECAST_JOBS, id, &callbacks);
}

/* True: the copy is complete. */
static bool trials_advance_copy(struct trials *trials)
{
    if (!sched_fork_advance(trials->copying))
        return false;
    trials->copy = sched_fork_end(take_ptr(trials->copying));
    return true;
}

static void trials_clear(struct trials *trials)
{
    sched_free(trials->copying != NULL ? sched_fork_end(trials->copying) : trials->copy);
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

static void describe_change(const struct trial *trial, const char *change, struct why *why)
{
    (void)snprintf(why->change, sizeof(why->change), "%s would start now%s%s", change,
        trial->where[0] != '\0' ? ", on " : "", trial->where);
    why->has_change = true;
}

/* Tries the changed key; if the job starts with it, reports and keeps it. */
static bool try_change(
    struct trials *trials, const struct class_key *key, const char *change, struct why *why)
{
    if (!starts_with(trials, key))
        return false;
    describe_change(&trials->trial, change, why);
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

/* The job waits, and its end is not unknown for other reasons. */
static bool has_times(const struct sched_job *job, const struct why *why)
{
    uint32_t endless = BLOCK_HELD_ADMIN | BLOCK_HELD_USER | BLOCK_NEVER | BLOCK_DEPENDENCY;
    return job != NULL && job->run == NULL && (job->blockers & endless) == 0 &&
           (why->n_reasons == 0 || why->reasons[0].code != WHY_NEVER_FITS);
}

/* --- in parts --- */

enum why_part { PART_LIKELY, PART_LATEST, PART_COPY, PART_CHANGES, PART_OVER };

struct why_run {
    struct sched *sched;
    uint64_t job;
    enum why_part part;
    struct forecast_run *forecast; // in progress
    struct forecast likely, latest;
    struct trials trials;
    size_t n_tried; // of `changes`
    struct why why;
};

struct why_run *why_begin(struct sched *sched, int64_t now_ms, uint64_t job)
{
    struct why_run *run = xcalloc(1, sizeof(*run));
    *run = (struct why_run){ .sched = sched, .job = job };
    why_reasons(sched, now_ms, job, false, &run->why);
    if (!has_times(sched_find(sched, job), &run->why))
        run->part = PART_OVER;
    return run;
}

/* True when this forecast is complete. */
static bool advance_forecast(struct why_run *run, size_t steps)
{
    bool is_certain = run->part == PART_LATEST;
    if (run->forecast == NULL) {
        run->forecast = forecast_begin(run->sched, run->sched->now_ms, FORECAST_JOBS, run->job, is_certain);
        return false;
    }
    if (!forecast_advance(run->forecast, steps))
        return false;
    forecast_end(run->forecast, is_certain ? &run->latest : &run->likely);
    run->forecast = NULL;
    return true;
}

static void take_times(struct why_run *run)
{
    struct why *why = &run->why;
    why->eta_ms = forecast_find(&run->likely, run->job);
    why->latest_ms = forecast_find(&run->latest, run->job);
    why->eta_ms = why->latest_ms < why->eta_ms ? why->latest_ms : why->eta_ms; // the certain one is earlier
    why_list_ahead(run->sched, &run->likely, run->job, why);
}

/* The next part: PART_OVER if it does not wait for limits, resources or other jobs. */
static enum why_part advance_copy(struct why_run *run, const struct sched_job *job)
{
    if (job->blockers != 0 || job->entry.class == NULL || job->class->is_parked)
        return PART_OVER;
    if (run->trials.copying == NULL)
        trials_begin(&run->trials, run->sched, run->job);
    return trials_advance_copy(&run->trials) ? PART_CHANGES : PART_COPY;
}

/* True: one starts the job, or none is left. */
static bool try_next_change(struct why_run *run, const struct sched_job *job)
{
    if (run->n_tried == sizeof(changes) / sizeof(changes[0]))
        return true;
    return changes[run->n_tried++](&run->trials, &job->class->key, &run->why);
}

bool why_advance(struct why_run *run, size_t steps)
{
    const struct sched_job *job = sched_find(run->sched, run->job);
    if (!has_times(job, &run->why))
        run->part = PART_OVER; // it may have started meanwhile, or is held
    switch (run->part) {
    case PART_LIKELY: run->part = advance_forecast(run, steps) ? PART_LATEST : PART_LIKELY; break;
    case PART_LATEST:
        if (!advance_forecast(run, steps))
            break;
        take_times(run);
        run->part = PART_COPY;
        break;
    case PART_COPY: run->part = advance_copy(run, job); break;
    case PART_CHANGES: run->part = try_next_change(run, job) ? PART_OVER : PART_CHANGES; break;
    case PART_OVER: break;
    }
    return run->part == PART_OVER;
}

void why_end(struct why_run *run, struct why *ret)
{
    if (run->forecast != NULL)
        forecast_end(run->forecast, NULL);
    trials_clear(&run->trials);
    forecast_clear(&run->likely);
    forecast_clear(&run->latest);
    if (ret != NULL)
        *ret = run->why;
    else
        why_clear(&run->why);
    free(run);
}

static void explain_dry_run(
    struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec, struct why *ret)
{
    struct trial trial = { .wanted = DRY_RUN, .cluster = &sched->cluster };
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
    struct why_run *run = why_begin(sched, now_ms, job);
    while (!why_advance(run, SIZE_MAX))
        continue;
    why_end(run, ret);
}

void why_clear(struct why *why)
{
    request_clear(&why->changed.request);
    *why = (struct why){ 0 };
}
