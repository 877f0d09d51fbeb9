/* SPDX-License-Identifier: MIT */
/*
 * Between the pure scheduler and the jobs: enters jobs into the queue, runs passes, turns what a pass decides
 * into events. A job whose start was returned waits a growing while before it is tried again, apart from the
 * queue.
 */
#include <stdio.h>
#include <stdlib.h>

#include "controller/core_private.h"

int core_request(const struct core *core, const struct job *job, struct sched_request *ret, struct error *err)
{
    struct job_spec asked = { .gpu_ids = job->gpu_ids };
    *ret = (struct sched_request){ .gpus = job->gpus, .gpu_mem = job->gpu_mem };
    return job_spec_gpu_ids(&asked, &ret->ids, &ret->n_ids, err);
}

void core_enqueue(struct core *core, struct core_job *entry)
{
    if (entry->not_before_ms != 0) {
        core_arm(core, entry->not_before_ms);
        return;
    }
    const struct job *job = entry->job;
    struct sched_request request;
    struct error err;
    if (core_request(core, job, &request, &err) < 0)
        abort(); // it was validated before it was stored
    queue_add(&core->queue, &entry->entry, job->id, job->uid, job->priority, &request);
    free(request.ids);
    core->is_dirty = true;
}

void core_defer(struct core *core, struct core_job *entry, int64_t until_ms)
{
    core->n_deferred += (until_ms != 0) - (entry->not_before_ms != 0);
    entry->not_before_ms = until_ms;
}

static void release_deferred(struct core *core, int64_t boot_ms)
{
    for (struct core_job *entry = core->jobs.first; entry != NULL && core->n_deferred > 0;
         entry = entry->after) {
        if (entry->not_before_ms == 0)
            continue;
        if (entry->not_before_ms > boot_ms) {
            core_arm(core, entry->not_before_ms);
            continue;
        }
        core_defer(core, entry, 0);
        if (entry->job->state == JOB_QUEUED)
            core_enqueue(core, entry);
    }
}

void core_timer(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    core->armed_ms = 0;
    if (core->open != NULL)
        core->open->is_urgent = true;
    release_deferred(core, boot_ms);
}

struct pass {
    struct core *core;
    int64_t boot_ms, wall_ms;
};

static void start_job(
    void *arg, struct queue_entry *queued, struct cluster_node *node, const struct record_list *grants)
{
    struct pass *pass = arg;
    struct core *core = pass->core;
    struct core_job *entry = core_find(core, queued->job);
    const struct core_node *where = core_find_node(core, node->name);
    struct job_event event = {
        .type = EVENT_ALLOCATED,
        .attempt = entry->job->attempt + 1,
        .token = core->effects.random(core->effects.arg) | 1,
        .node = node->name,
        .boot_id = where->hello.boot_id,
        .gpus = *grants,
    };
    core_change(core, entry, &event, pass->boot_ms, pass->wall_ms, NULL);
}

void core_schedule(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    struct pass pass = { .core = core, .boot_ms = boot_ms, .wall_ms = wall_ms };
    core->is_dirty = false;
    sched_pass(&core->queue, &core->cluster, &policy_priority_fifo, &placement_best_fit, start_job, &pass);
}
