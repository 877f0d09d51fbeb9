/* SPDX-License-Identifier: MIT */
/*
 * Timers of single jobs: the deadline while a job waits, and when nodes that refused it are tried again; its
 * time limit while it runs. The shepherd enforces the limit; here it is enforced for jobs without a shepherd,
 * and for others it detects that they should have ended. There are two sets of timers. Time limits use the
 * boot clock, so setting a clock neither extends nor ends a job; times that end a wait use the core's clock.
 */
#include <stdlib.h>

#include "base/containers/timers.h"
#include "base/memory.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/park.h"
#include "controller/core/refusal.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"

#define SHEPHERD_LATE_MS 5000 // a job should have ended this long after its limit and its grace period

struct core_limits {
    struct timers limits;    // on the boot clock
    struct timers deadlines; // on the core's clock
};

static struct timers *timers_of(const struct core *core, bool is_deadline)
{
    return is_deadline ? &core->limits->deadlines : &core->limits->limits;
}

static void clear_due(const struct core *core, struct core_entry *entry)
{
    if (core_extra(entry)->due.place == 0)
        return;
    struct core_due *due = &core_make_extra(entry)->due;
    timers_set(timers_of(core, due->is_deadline), TIME_NEVER, 0, entry, &due->place);
}

static void set(const struct core *core, struct core_entry *entry, bool is_deadline, int64_t at_ms)
{
    clear_due(core, entry);
    struct core_due *due = &core_make_extra(entry)->due;
    due->is_deadline = is_deadline;
    due->limit_ms = entry->job->ask->time_limit_ms;
    timers_set(timers_of(core, is_deadline), at_ms, 0, entry, &due->place);
}

/* On the core's clock. */
static int64_t limit_ends_ms(const struct core *core, const struct job *job)
{
    int64_t ends_ms = job->started_ms + job->ask->time_limit_ms + job_park(job)->total_ms;
    if (job->ask->park_on_timeout)
        return ends_ms;
    return job->ask->adopted_pid != 0 ? ends_ms : ends_ms + core_grace_ms(core, job->ask) + SHEPHERD_LATE_MS;
}

static bool has_deadline(const struct job *job)
{
    return job->state == JOB_QUEUED && job->ask->deadline_ms != 0 && !job_is_split_up(job);
}

/* While it waits: its deadline, or when nodes that refused it are tried again; 0: neither. */
static int64_t waiting_due_ms(const struct core_entry *entry)
{
    int64_t deadline_ms = has_deadline(entry->job) ? entry->job->ask->deadline_ms : 0;
    int64_t readmits_ms = entry->job->state == JOB_QUEUED ? core_extra(entry)->readmits_ms : 0;
    bool is_sooner = readmits_ms != 0 && (deadline_ms == 0 || readmits_ms < deadline_ms);
    return is_sooner ? readmits_ms : deadline_ms;
}

/* Sets the timer according to its state and request. */
static void set_due(struct core *core, struct core_entry *entry)
{
    const struct job *job = entry->job;
    int64_t waits_until_ms = waiting_due_ms(entry);
    if (waits_until_ms != 0)
        set(core, entry, true, waits_until_ms);
    else if (job->state != JOB_RUNNING || job->ask->time_limit_ms == 0 || job_park(job)->phase != PARK_NONE)
        clear_due(core, entry);
    else if (core_extra(entry)->due.place == 0 || core_extra(entry)->due.limit_ms != job->ask->time_limit_ms)
        set(core, entry, false, core->boot_ms + limit_ends_ms(core, job) - core->now_ms);
}

static int64_t next_ms(const struct core *core)
{
    int64_t limit_ms = timers_next(&core->limits->limits);
    int64_t deadline_ms = core_boot_at(core, timers_next(&core->limits->deadlines));
    return limit_ms < deadline_ms ? limit_ms : deadline_ms;
}

/* As its shepherd would have reported it. */
static void end_at_limit(struct core *core, struct core_entry *entry)
{
    struct job_event event = { .attempt = entry->job->attempt,
        .end = END_TIME_LIMIT,
        .type = EVENT_PREEMPTED,
        .wall_ms = core->now_ms };
    if (entry->job->ask->park_on_timeout && core_park_job(core, entry, PARK_TIME_LIMIT))
        return;
    if (job_requeue_decide(entry->job, &event, 0))
        core_change(core, entry, &event, NULL);
    else
        core_stop_job(core, entry, core->options.admin_uid, END_TIME_LIMIT);
}

static void end_wait(struct core *core, struct core_entry *entry)
{
    if (has_deadline(entry->job) && entry->job->ask->deadline_ms <= core->now_ms) {
        core_stop_job(core, entry, core->options.admin_uid, END_DEADLINE);
        return;
    }
    int64_t readmits_ms = core_extra(entry)->readmits_ms;
    if (readmits_ms != 0 && readmits_ms <= core->now_ms)
        core_readmit_nodes(core, entry);
    set_due(core, entry);
}

static void run_due(struct core *core)
{
    int kind;
    void *owner;
    while (timers_take(&core->limits->limits, core->boot_ms, &kind, &owner))
        end_at_limit(core, owner);
    while (timers_take(&core->limits->deadlines, core->now_ms, &kind, &owner))
        end_wait(core, owner);
}

static void init(struct core *core)
{
    core->limits = xcalloc(1, sizeof(*core->limits));
}

static void clear(struct core *core)
{
    timers_free(&core->limits->limits);
    timers_free(&core->limits->deadlines);
    free(core->limits);
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    set_due(core, entry);
}

const struct core_concern core_concern_limits = {
    .name = "limits",
    .init = init,
    .free = clear,
    .resume = set_due,
    .events = CORE_ON_ALL,
    .event = on_event,
    .next_ms = next_ms,
    .run = run_due,
};
