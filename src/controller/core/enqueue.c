/* SPDX-License-Identifier: MIT */
/* Passes jobs to the scheduler: waiting ones and, at a start, those that hold resources. */
#include "controller/core/enqueue.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "controller/core/describe.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "job/idle.h"
#include "sched/from_record.h"

/* It failed, and the time of its next attempt is known. */
void core_await_retry(struct core *core, const struct job *job)
{
    if (job->retry_ms > core->now_ms)
        sched_block(core->sched, core->now_ms, job->id, BLOCK_BACKOFF, 0, job->retry_ms);
}

/* Reports at once dependencies that can never be satisfied. */
static void resolve_impossible(struct core *core, struct description *description)
{
    for (size_t i = description->n_open; i < description->spec.n_after; i++)
        sched_resolve_dependents(
            core->sched, core->now_ms, description->after[i].job, description->after[i].kind == AFTER_FAIL);
    description_clear(description);
}

void core_enqueue_new(struct core *core, struct description *description)
{
    sched_submit(core->sched, core->now_ms, &description->spec);
    resolve_impossible(core, description);
}

void core_enqueue(struct core *core, struct core_entry *entry, const struct core_facts *facts, bool is_known)
{
    struct description description;
    struct error err = { 0 };
    if (core_describe(core, entry->job, facts, &description, &err) < 0) {
        log_error("a stored job cannot be read: %s", err.message);
        abort(); // it was validated before it was stored
    }
    for (size_t i = 0; i < description.n_unknown; i++)
        core->effects.fetch_end(core->effects.arg, description.unknown[i]);
    if (is_known)
        sched_edit(core->sched, core->now_ms, &description.spec);
    else
        sched_submit(core->sched, core->now_ms, &description.spec);
    if (!is_known)
        core_await_retry(core, entry->job); // at a start
    resolve_impossible(core, &description);
}

/* It waits for the GPUs that it left, or for as many of the same kind on its node. */
static void enqueue_owed(struct core *core, struct core_entry *entry, bool is_known)
{
    _cleanup_(description_clear) struct description description;
    _cleanup_(allocation_clear) struct allocation left;
    struct error err;
    const struct core_facts none = { 0 };
    struct job_ask ask;
    struct job parked = *entry->job; // borrowed
    park_owed_ask(entry->job, &ask);
    parked.ask = &ask;
    if (core_describe(core, &parked, &none, &description, &err) < 0)
        abort();
    bool stays = entry->job->state == JOB_STOPPING || job_park(entry->job)->phase == PARK_PARKED;
    description.spec.hold = stays ? BLOCK_HELD_USER : 0;
    park_times_of_job(sched_cluster(core->sched), entry->job, core->now_ms, &description.spec, &left);
    (is_known ? sched_edit : sched_submit)(core->sched, core->now_ms, &description.spec);
}

void core_enqueue_parked(struct core *core, struct core_entry *entry, bool is_known)
{
    if (job_is_owed(entry->job)) {
        enqueue_owed(core, entry, is_known);
        return;
    }
    struct description description;
    struct error err;
    const struct core_facts none = { 0 };
    struct job_ask ask;
    struct job parked = *entry->job; // borrowed
    _cleanup_free_ char *places = park_places_of_job(sched_known(core->sched), entry->job);
    job_park_ask(entry->job, places, &ask);
    parked.ask = &ask;
    if (core_describe(core, &parked, &none, &description, &err) < 0)
        abort();
    bool stays = entry->job->state == JOB_STOPPING || job_park(entry->job)->phase == PARK_PARKED;
    description.spec.hold = stays ? BLOCK_HELD_USER : 0;
    if (is_known)
        sched_edit(core->sched, core->now_ms, &description.spec);
    else
        sched_submit(core->sched, core->now_ms, &description.spec);
    description_clear(&description);
    free(ask.gpu_ids);
}

void core_enqueue_behind(struct core *core, struct core_entry *entry)
{
    core_enqueue(core, entry, NULL, false);
    sched_block(core->sched, core->now_ms, entry->job->id, BLOCK_HELD_USER, 0, TIME_NEVER);
}

void core_resume(struct core *core, struct core_entry *entry)
{
    _cleanup_(description_clear) struct description description;
    struct allocation allocation, left; // `left` stays empty: the job is not parked
    struct error err;
    const struct core_facts none = { 0 };
    struct job *job = entry->job;
    struct job_ask ask = *job->ask;
    ask.after = NULL; // it has started: it waits for no dependency
    struct job started = *job;
    started.ask = &ask;
    if (core_describe(core, &started, &none, &description, &err) < 0)
        abort();
    allocation_of_job(sched_cluster(core->sched), job, &allocation);
    park_times_of_job(sched_cluster(core->sched), job, core->now_ms, &description.spec, &left);
    int64_t started_ms = park_run_since(job, core->now_ms);
    sched_resume(core->sched, core->now_ms, &description.spec, &allocation, started_ms);
    sched_idle(core->sched, core->now_ms, job->id, job->idle_level == IDLE_YIELDS);
    allocation_clear(&allocation);
}
