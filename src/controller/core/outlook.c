/* SPDX-License-Identifier: MIT */
/*
 * Why jobs wait and when they will start. The reasons of one job are computed on request. For listings one
 * forecast, which costs a run of the scheduler on a copy, serves all jobs and all clients until something
 * changes, and with a long queue for two more seconds.
 */
#include "controller/core/outlook.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/clock.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define FORECAST_JOBS   1000U
#define FORECAST_MS     2000 // how long a forecast is valid
#define FORECAST_EVENTS 200U // or until this many events, with a long queue
#define QUEUE_SHORT     100U // jobs; with a shorter queue, the forecast may be recomputed after each change
#define NODES_FEW       64U  // with more nodes, it is only computed in parts

static void clear_forecasts(struct outlook *outlook)
{
    forecast_clear(&outlook->likely);
    forecast_clear(&outlook->latest);
    outlook->made_ms = 0;
}

void core_clear_outlook(struct core *core)
{
    struct outlook *outlook = &core->outlook;
    if (outlook->run != NULL)
        forecast_end(outlook->run, NULL);
    forecast_clear(&outlook->next_likely);
    clear_forecasts(outlook);
    *outlook = (struct outlook){ 0 };
}

static bool is_good(const struct core *core, int64_t now_ms)
{
    const struct outlook *outlook = &core->outlook;
    uint64_t events_max = sched_queue(core->sched)->length < QUEUE_SHORT ? 1 : FORECAST_EVENTS;
    return outlook->made_ms != 0 && now_ms - outlook->made_ms < FORECAST_MS &&
           core->last_event - outlook->event < events_max;
}

/* Both are complete, or neither is displayed. */
static void take_made(struct outlook *outlook, const struct forecast *latest)
{
    clear_forecasts(outlook);
    outlook->likely = outlook->next_likely;
    outlook->latest = *latest;
    outlook->next_likely = (struct forecast){ 0 };
    outlook->made_ms = outlook->next_ms;
    outlook->event = outlook->next_event;
    outlook->is_certain = false;
    outlook->n_made++;
}

/* Beginning and ending a forecast each take as long as many of its steps. */
bool core_advance_outlook(struct core *core, int64_t wall_ms, size_t steps)
{
    struct outlook *outlook = &core->outlook;
    int64_t now_ms = core_look_ms(core, wall_ms);
    struct forecast made;
    if (outlook->run == NULL) {
        if (!outlook->is_certain && is_good(core, now_ms))
            return true;
        if (!outlook->is_certain) {
            outlook->next_ms = now_ms;
            outlook->next_event = core->last_event;
        }
        outlook->run = forecast_begin(core->sched, now_ms, FORECAST_JOBS, 0, outlook->is_certain);
        return false;
    }
    if (!forecast_advance(outlook->run, steps))
        return false;
    forecast_end(take_ptr(outlook->run), &made);
    if (outlook->is_certain) {
        take_made(outlook, &made);
        return true;
    }
    outlook->next_likely = made;
    outlook->is_certain = true;
    return false;
}

uint64_t core_outlook_count(const struct core *core)
{
    return core->outlook.n_made;
}

/* For a large cluster this would take too long here, so the answer is as old as the last one. */
static void refresh(struct core *core, int64_t wall_ms)
{
    bool is_large = sched_cluster(core->sched)->n_nodes > NODES_FEW;
    while (!is_large && !core_advance_outlook(core, wall_ms, SIZE_MAX))
        continue;
}

/* The time by which a job that was parked by the rule has its GPUs again; TIME_NEVER: none was promised, or
 * its return has failed. */
static int64_t promised_return(const struct core *core, int64_t wall_ms, uint64_t job)
{
    int64_t until_ms = sched_latest_return(core->sched, job);
    return until_ms > core_look_ms(core, wall_ms) ? until_ms : TIME_NEVER;
}

void core_eta(struct core *core, int64_t wall_ms, uint64_t job, int64_t *ret_eta_ms, int64_t *ret_latest_ms)
{
    refresh(core, wall_ms);
    *ret_eta_ms = forecast_find(&core->outlook.likely, job);
    *ret_latest_ms = forecast_find(&core->outlook.latest, job);
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
    return sched_expected_end(core->sched, job, core_look_ms(core, wall_ms), eta_ms);
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
    if (!is_waiting(entry))
        return word;
    why_reasons(core->sched, core_look_ms(core, wall_ms), job->id, true, &why);
    if (why.n_reasons > 0) {
        word = why_code_name(why.reasons[0].code);
        (void)snprintf(text, size, "%s", why.reasons[0].text);
        if (why.reasons[0].is_own_failure && job->text != NULL)
            (void)snprintf(text, size, "its last attempt failed: %s", job->text);
    }
    why_clear(&why);
    return word;
}

struct why_run *core_why_begin(const struct core *core, int64_t wall_ms, uint64_t job)
{
    return is_waiting(core_find(core, job)) ? why_begin(core->sched, core_look_ms(core, wall_ms), job) : NULL;
}

bool core_why_advance(struct why_run *run, size_t steps)
{
    return why_advance(run, steps);
}

void core_why_end(struct why_run *run, struct why *ret)
{
    why_end(run, ret);
}
