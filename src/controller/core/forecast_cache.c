/* SPDX-License-Identifier: MIT */
/*
 * Why jobs wait and when they will start. The reasons of one job are computed on request. For listings one
 * forecast, which costs a run of the scheduler on a copy, serves all jobs and all clients until something
 * changes, and with a long queue for two more seconds.
 */
#include "controller/core/forecast_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/behind.h"

#define FORECAST_JOBS   1000U
#define FORECAST_MS     2000 // how long a forecast is valid
#define FORECAST_EVENTS 200U // or until this many events, with a long queue
#define QUEUE_SHORT     100U // jobs; with a shorter queue, the forecast may be recomputed after each change
#define NODES_FEW       64U  // with more nodes, it is only computed in parts

static void clear_forecasts(struct forecast_cache *forecast_cache)
{
    forecast_clear(&forecast_cache->likely);
    forecast_clear(&forecast_cache->latest);
    forecast_cache->made_ms = 0;
}

void core_clear_forecast_cache(struct core *core)
{
    struct forecast_cache *forecast_cache = &core->forecast_cache;
    if (forecast_cache->run != NULL)
        forecast_end(forecast_cache->run, NULL);
    forecast_clear(&forecast_cache->next_likely);
    clear_forecasts(forecast_cache);
    *forecast_cache = (struct forecast_cache){ 0 };
}

static bool is_good(const struct core *core, int64_t now_ms)
{
    const struct forecast_cache *forecast_cache = &core->forecast_cache;
    uint64_t events_max = sched_queue(core->sched)->length < QUEUE_SHORT ? 1 : FORECAST_EVENTS;
    return forecast_cache->made_ms != 0 && now_ms - forecast_cache->made_ms < FORECAST_MS &&
           core->last_event - forecast_cache->event < events_max;
}

/* Both are complete, or neither is displayed. */
static void take_made(struct forecast_cache *forecast_cache, const struct forecast *latest)
{
    clear_forecasts(forecast_cache);
    forecast_cache->likely = forecast_cache->next_likely;
    forecast_cache->latest = *latest;
    forecast_cache->next_likely = (struct forecast){ 0 };
    forecast_cache->made_ms = forecast_cache->next_ms;
    forecast_cache->event = forecast_cache->next_event;
    forecast_cache->is_certain = false;
    forecast_cache->n_made++;
}

/* Beginning and ending a forecast each take as long as many of its steps. */
bool core_advance_forecasts(struct core *core, int64_t wall_ms, size_t steps)
{
    struct forecast_cache *forecast_cache = &core->forecast_cache;
    int64_t now_ms = core_now_ms(core, wall_ms);
    struct forecast made;
    if (forecast_cache->run == NULL) {
        if (!forecast_cache->is_certain && is_good(core, now_ms))
            return true;
        if (!forecast_cache->is_certain) {
            forecast_cache->next_ms = now_ms;
            forecast_cache->next_event = core->last_event;
        }
        forecast_cache->run =
            forecast_begin(core->sched, now_ms, FORECAST_JOBS, 0, forecast_cache->is_certain);
        return false;
    }
    if (!forecast_advance(forecast_cache->run, steps))
        return false;
    forecast_end(take_ptr(forecast_cache->run), &made);
    if (forecast_cache->is_certain) {
        take_made(forecast_cache, &made);
        return true;
    }
    forecast_cache->next_likely = made;
    forecast_cache->is_certain = true;
    return false;
}

uint64_t core_forecast_count(const struct core *core)
{
    return core->forecast_cache.n_made;
}

/* For a large cluster this would take too long here, so the answer is as old as the last one. */
static void refresh(struct core *core, int64_t wall_ms)
{
    bool is_large = sched_cluster(core->sched)->n_nodes > NODES_FEW;
    while (!is_large && !core_advance_forecasts(core, wall_ms, SIZE_MAX))
        continue;
}

/* The time by which a job that was parked by the rule has its GPUs again; TIME_NEVER: none was promised, or
 * its return has failed. */
static int64_t promised_return(const struct core *core, int64_t wall_ms, uint64_t job)
{
    int64_t until_ms = sched_latest_return(core->sched, job);
    return until_ms > core_now_ms(core, wall_ms) ? until_ms : TIME_NEVER;
}

void core_eta(struct core *core, int64_t wall_ms, uint64_t job, int64_t *ret_eta_ms, int64_t *ret_latest_ms)
{
    refresh(core, wall_ms);
    *ret_eta_ms = forecast_find(&core->forecast_cache.likely, job);
    *ret_latest_ms = forecast_find(&core->forecast_cache.latest, job);
    int64_t promised_ms = promised_return(core, wall_ms, job);
    *ret_latest_ms = promised_ms < *ret_latest_ms ? promised_ms : *ret_latest_ms;
    *ret_eta_ms =
        *ret_latest_ms < *ret_eta_ms ? *ret_latest_ms : *ret_eta_ms; // the certain time takes precedence
}

int64_t core_latest_return(const struct core *core, uint64_t job)
{
    return sched_latest_return(core->sched, job);
}

int64_t core_expected_end(const struct core *core, int64_t wall_ms, uint64_t job, int64_t eta_ms)
{
    return sched_expected_end(core->sched, job, core_now_ms(core, wall_ms), eta_ms);
}

static bool is_waiting(const struct core_entry *entry)
{
    return entry != NULL && !job_is_split_up(entry->job) &&
           (entry->job->state == JOB_QUEUED ||
               (entry->job->state == JOB_RUNNING && job_park(entry->job)->phase == PARK_WAITING));
}

const char *core_wait_reason(
    const struct core *core, int64_t wall_ms, const struct core_entry *entry, char *text, size_t size)
{
    const struct job *job = entry->job;
    struct why why = { 0 };
    const char *word = "";
    text[0] = '\0';
    if (core_why_behind(core, wall_ms, job, &why))
        (void)snprintf(text, size, "%s", why.reasons[0].text);
    if (job_waits_behind(job))
        return why_code_name(WHY_RESOURCES);
    if (!is_waiting(entry))
        return word;
    why_reasons(core->sched, core_now_ms(core, wall_ms), job->id, true, &why);
    if (why.n_reasons > 0) {
        word = why_code_name(why.reasons[0].code);
        (void)snprintf(text, size, "%s", why.reasons[0].text);
        if (why.reasons[0].is_own_failure && job->text != NULL)
            (void)snprintf(text, size, "its last attempt failed: %s", job->text);
    }
    why_clear(&why);
    return word;
}

bool core_why_behind(const struct core *core, int64_t wall_ms, const struct job *job, struct why *ret)
{
    const struct job *leader = core_job(core, job_park(job)->behind);
    if (!job_waits_behind(job) || leader == NULL)
        return false;
    *ret = WHY_NONE;
    ret->eta_ms = core_expected_end(core, wall_ms, leader->id, TIME_NEVER);
    struct why_reason *reason = &ret->reasons[ret->n_reasons++];
    *reason = (struct why_reason){
        .code = WHY_RESOURCES, .jobs = { leader->id }, .n_jobs = 1, .until_ms = TIME_NEVER
    };
    (void)snprintf(reason->text, sizeof(reason->text),
        "it gets the GPUs of %" PRIu64 ".%" PRIu32 " when that ends", leader->array_job, leader->array_index);
    return true;
}

struct why_run *core_why_begin(const struct core *core, int64_t wall_ms, uint64_t job)
{
    return is_waiting(core_find(core, job)) ? why_begin(core->sched, core_now_ms(core, wall_ms), job) : NULL;
}

bool core_why_advance(struct why_run *run, size_t steps)
{
    return why_advance(run, steps);
}

void core_why_end(struct why_run *run, struct why *ret)
{
    why_end(run, ret);
}
