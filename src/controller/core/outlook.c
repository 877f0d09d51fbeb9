/* SPDX-License-Identifier: MIT */
/*
 * Why jobs wait and when they will start. The reasons of one job are computed on request. For listings one
 * forecast, which costs a run of the scheduler on a copy, serves all jobs and all clients until something
 * changes, and with a long queue for two more seconds.
 */
#include "controller/core/outlook.h"

#include <stdio.h>
#include <string.h>

#include "controller/core/clock.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define FORECAST_JOBS   1000U
#define FORECAST_MS     2000 // how long one is good for
#define FORECAST_EVENTS 200U // or until so much has happened, with a long queue
#define QUEUE_SHORT     100U // jobs; with fewer, the forecast may be recomputed for each change

void core_clear_outlook(struct core *core)
{
    if (core->outlook.made_ms == 0)
        return;
    forecast_clear(&core->outlook.likely);
    forecast_clear(&core->outlook.latest);
    core->outlook = (struct outlook){ 0 };
}

static void refresh(struct core *core, int64_t now_ms)
{
    struct outlook *outlook = &core->outlook;
    uint64_t events_max = sched_queue(core->sched)->length < QUEUE_SHORT ? 1 : FORECAST_EVENTS;
    bool is_good = outlook->made_ms != 0 && now_ms - outlook->made_ms < FORECAST_MS &&
                   core->last_event - outlook->event < events_max;
    if (is_good)
        return;
    core_clear_outlook(core);
    forecast_run(core->sched, now_ms, FORECAST_JOBS, 0, false, &outlook->likely);
    forecast_run(core->sched, now_ms, FORECAST_JOBS, 0, true, &outlook->latest);
    outlook->made_ms = now_ms;
    outlook->event = core->last_event;
}

void core_eta(struct core *core, int64_t wall_ms, uint64_t job, int64_t *ret_eta_ms, int64_t *ret_latest_ms)
{
    refresh(core, core_look_ms(core, wall_ms));
    *ret_eta_ms = forecast_find(&core->outlook.likely, job);
    *ret_latest_ms = forecast_find(&core->outlook.latest, job);
    *ret_eta_ms = *ret_latest_ms < *ret_eta_ms ? *ret_latest_ms : *ret_eta_ms; // what is certain comes first
}

static bool is_waiting(const struct core *core, uint64_t id)
{
    const struct core_entry *entry = core_find(core, id);
    return entry != NULL &&
           (entry->job->state == JOB_QUEUED ||
               (entry->job->state == JOB_RUNNING && job_park(entry->job)->phase == PARK_WAITING));
}

const char *core_wait_reason(const struct core *core, int64_t wall_ms, uint64_t id, char *text, size_t size)
{
    struct why why = { 0 };
    const char *word = "";
    text[0] = '\0';
    if (!is_waiting(core, id))
        return word;
    why_reasons(core->sched, core_look_ms(core, wall_ms), id, true, &why);
    if (why.n_reasons > 0) {
        word = why_code_name(why.reasons[0].code);
        (void)snprintf(text, size, "%s", why.reasons[0].text);
    }
    why_clear(&why);
    return word;
}

bool core_why(const struct core *core, int64_t wall_ms, uint64_t job, struct why *ret)
{
    if (!is_waiting(core, job))
        return false;
    why_explain(core->sched, core_look_ms(core, wall_ms), job, NULL, ret);
    return true;
}
