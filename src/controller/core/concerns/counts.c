/* SPDX-License-Identifier: MIT */
/* Counters of jobs for GET /metrics. They start at 0 with each mgpud, as Prometheus expects of counters; only
 * waiting and running jobs are counted from loaded data. No decision depends on them. */
#include "controller/core/counts.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "job/array.h"
#include "job/behind.h"

static void init(struct core *core)
{
    core->counts = xcalloc(1, sizeof(*core->counts));
}

static void clear(struct core *core)
{
    free(core->counts);
}

static uint32_t count_elements(const struct job *job)
{
    struct error err;
    struct array left = { 0 };
    if (job->state != JOB_QUEUED || parse_array(job->array_left, &left, &err) < 0)
        return 0;
    uint32_t count = array_size(&left);
    array_clear(&left);
    return count;
}

static void count_state(struct core *core, struct core_entry *entry, enum job_state before)
{
    const struct job *job = entry->job;
    if (job_is_array(job)) {
        uint32_t count = count_elements(job), *counted = &core_make_extra(entry)->n_counted;
        core->counts->jobs[JOB_QUEUED] += (uint64_t)count - *counted;
        *counted = count;
        return;
    }
    bool was_behind = core_extra(entry)->is_counted_behind, is_behind = job_waits_behind(job);
    if (before != JOB_NEW)
        core->counts->jobs[was_behind ? JOB_QUEUED : before]--;
    core->counts->jobs[job_shown_state(job)]++;
    if (was_behind != is_behind)
        core_make_extra(entry)->is_counted_behind = is_behind;
}

static void count_attempt(struct core_counts *counts, const struct job *job, const struct job_event *event)
{
    if (event->type == EVENT_STARTED) {
        int64_t since_ms = job->queued_ms != 0 ? job->queued_ms : job->submitted_ms;
        histogram_add(&counts->waits, &histogram_of_jobs, (double)(job->started_ms - since_ms) / 1000);
    }
    bool is_over = event->type == EVENT_ENDED || event->type == EVENT_REQUEUED;
    if (is_over && event->started_wall_ms != 0)
        histogram_add(&counts->runs, &histogram_of_jobs, (double)event->run_ms / 1000);
    if (event->type == EVENT_REQUEUED && event->cause < REQUEUE_CAUSES)
        counts->requeues[event->cause]++;
}

/* Counts the period that has ended: the job continues, or its attempt has ended. True if there was one. */
static bool count_period(struct core_counts *counts, struct core_entry *entry, int64_t wall_ms)
{
    int64_t since_ms = job_is_early(entry->job) ? 0 : job_park(entry->job)->since_ms; // which is not a park
    int64_t before_ms = core_extra(entry)->parked_since_ms;
    if (since_ms == before_ms)
        return false;
    core_make_extra(entry)->parked_since_ms = since_ms;
    if (since_ms != 0)
        return false;
    counts->parked_ms += wall_ms > before_ms ? wall_ms - before_ms : 0;
    return true;
}

static void count_park(struct core_counts *counts, struct core_entry *entry, const struct job_event *event)
{
    bool is_over = count_period(counts, entry, event->wall_ms);
    if (job_early_is_over(entry->job, event)) {
        counts->early_starts++;
        counts->saved_ms += job_park(entry->job)->saved_ms;
    }
    bool is_refused = event->type == EVENT_UNPARKED && event->text != NULL;
    if (job_park_has_begun(entry->job, event))
        counts->parks[job_park(entry->job)->cause]++;
    else if (event->type == EVENT_PARKED || (is_refused && is_over))
        counts->refused_returns++;
    else if (is_refused)
        counts->refused_parks++;
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    count_state(core, entry, news->before);
    count_attempt(core->counts, job, news->event);
    count_park(core->counts, entry, news->event);
    if (news->before == JOB_DONE || job->state != JOB_DONE || job_is_array(job))
        return;
    core->counts->ended[job->end]++;
    core->counts->failed_exits += job->end == END_EXIT && job->exit_code != 0;
}

static void on_resume(struct core *core, struct core_entry *entry)
{
    count_state(core, entry, JOB_NEW);
    if (job_park(entry->job)->since_ms != 0 && !job_is_early(entry->job))
        core_make_extra(entry)->parked_since_ms = job_park(entry->job)->since_ms;
}

const struct core_counts *core_counts(const struct core *core)
{
    return core->counts;
}

const struct core_concern core_concern_counts = {
    .name = "counts",
    .init = init,
    .free = clear,
    .resume = on_resume,
    .events = CORE_ON_ALL,
    .event = on_event,
};
