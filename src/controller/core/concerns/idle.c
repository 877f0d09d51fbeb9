/* SPDX-License-Identifier: MIT */
/*
 * Running jobs that do not use their GPUs. For each report of an agent, the job's current level is compared
 * with the one in its record; a change is an event, so that all concerns see it and a replay decides the
 * same. Without reports nothing happens: unknown usage does not count as idle.
 */
#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"

static void note_level(struct core *core, struct core_entry *entry, enum idle_level level, int64_t idle_ms)
{
    const struct job *job = entry->job;
    char idle[32], end[32];
    int64_t end_ms = idle_end_ms(&core->options.idle, job);
    _cleanup_(job_event_clear) struct job_event event = {
        .type = EVENT_IDLE, .attempt = job->attempt, .idle_level = level, .idle_ms = idle_ms
    };
    format_duration(idle_ms, idle, sizeof(idle));
    format_duration(end_ms, end, sizeof(end));
    if (level == IDLE_NONE && idle_ms == 0)
        event.text = xstrdup("it uses its GPUs again");
    else if (level == IDLE_NONE)
        event.text = xasprintf("it has left its GPUs unused for %s, which is allowed now", idle);
    else
        event.text = xasprintf("it has left its GPUs unused for %s%s%s%s", idle,
            level == IDLE_YIELDS ? "; other jobs can preempt it" : "",
            end_ms > 0 ? "; it will be ended after " : "", end_ms > 0 ? end : "");
    core_change(core, entry, &event, NULL);
}

static void on_usage(struct core *core, struct core_entry *entry, const struct attempt_usage *usage)
{
    bool is_over = false;
    bool is_still = job_run(entry->job)->suspended_ms != 0 || // GPUs that it cannot use do not count
                    job_park(entry->job)->phase != PARK_NONE;
    if (entry->job->state != JOB_RUNNING || core_extra(entry)->usage == NULL || is_still)
        return;
    int64_t idle_ms = (int64_t)core_extra(entry)->usage->idle_ms;
    enum idle_level level = idle_judge(&core->options.idle, entry->job, idle_ms, core->now_ms, &is_over);
    if (level != entry->job->idle_level)
        note_level(core, entry, level, idle_ms);
    if (!is_over)
        return;
    core_stop_job(core, entry, core->options.admin_uid, END_IDLE_TIMEOUT);
}

int64_t core_idle_ms(const struct core_entry *entry)
{
    const struct job_usage *usage = core_usage(entry);
    return usage != NULL && entry->job->state == JOB_RUNNING ? (int64_t)usage->idle_ms : 0;
}

int64_t core_idle_end_ms(const struct core *core, const struct job *job)
{
    return job->grants.count > 0 ? idle_end_ms(&core->options.idle, job) : 0;
}

int64_t core_gpu_idle_ms(const struct core_entry *entry, const char *uuid)
{
    const struct job_usage *usage = core_usage(entry);
    if (usage == NULL || uuid == NULL || entry->job->state != JOB_RUNNING)
        return 0;
    const struct usage_gpu *gpus = usage->gpus.items;
    size_t place = job_gpu_place(entry->job, uuid);
    return place < usage->gpus.count ? (int64_t)gpus[place].idle_ms : 0;
}

bool core_gpu_is_wasted(const struct core *core, const struct core_entry *entry, const char *uuid)
{
    int64_t warn_ms = core->options.idle.warn_ms;
    if (entry->job->ask->idle_ok)
        return false;
    return entry->job->idle_level != IDLE_NONE || (warn_ms != 0 && core_gpu_idle_ms(entry, uuid) >= warn_ms);
}

const struct core_concern core_concern_idle = {
    .name = "idle",
    .usage = on_usage,
};
