/* SPDX-License-Identifier: MIT */
/* Reading the core, for the API. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/core_private.h"

struct core_job *core_find(const struct core *core, uint64_t id)
{
    return job_table_find(&core->jobs, id);
}

const struct job *core_job(const struct core *core, uint64_t id)
{
    const struct core_job *entry = core_find(core, id);
    return entry != NULL ? entry->job : NULL;
}

void core_each_job(const struct core *core, void (*visit)(void *arg, const struct job *job), void *arg)
{
    const struct core_job *after = NULL;
    for (const struct core_job *entry = core->jobs.first; entry != NULL; entry = after) {
        after = entry->after;
        visit(arg, entry->job);
    }
}

size_t core_queue_position(const struct core *core, uint64_t id)
{
    const struct core_job *entry = core_find(core, id);
    return entry != NULL ? queue_position(&core->queue, &entry->entry) : 0;
}

const char *core_wait_reason(const struct core *core, uint64_t id, char *text, size_t size)
{
    const struct core_job *entry = core_find(core, id);
    text[0] = '\0';
    if (entry == NULL || entry->job->state != JOB_QUEUED)
        return "";
    if (entry->not_before_ms != 0) {
        (void)snprintf(
            text, size, "it is tried again soon: %s", entry->job->text != NULL ? entry->job->text : "");
        return "backoff";
    }
    struct sched_request request;
    struct error err;
    if (core_request(core, entry->job, &request, &err) < 0)
        return "";
    const char *reason = sched_explain(&core->cluster, &request, text, size);
    free(request.ids);
    return reason;
}

void core_each_node(
    const struct core *core, void (*visit)(void *arg, const struct core_node *node), void *arg)
{
    for (size_t i = 0; i < core->n_nodes; i++)
        visit(arg, &core->nodes[i]);
}

const struct core_node *core_node(const struct core *core, const char *name)
{
    return core_find_node(core, name);
}

size_t core_gpu_jobs(
    const struct core *core, const char *node, uint32_t gpu_index, uint64_t *jobs, size_t max)
{
    size_t found = 0;
    for (const struct core_job *entry = core->active_first; entry != NULL; entry = entry->active_after) {
        const struct job *job = entry->job;
        const struct gpu_grant *grants = job->grants.items;
        for (size_t i = 0; strcmp(job->node, node) == 0 && i < job->grants.count; i++) {
            if (grants[i].index != gpu_index)
                continue;
            if (found < max)
                jobs[found] = job->id;
            found++;
        }
    }
    return found;
}

uint64_t core_last_event(const struct core *core)
{
    return core->last_durable_event;
}

uint64_t core_last_job(const struct core *core)
{
    return core->last_job;
}
