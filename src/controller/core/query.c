/* SPDX-License-Identifier: MIT */
/* Queries of the core, for the API. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define READ_AHEAD 8 // jobs

const struct job *core_job(const struct core *core, uint64_t id)
{
    const struct core_entry *entry = core_find(core, id);
    return entry != NULL ? entry->job : NULL;
}

void core_each_job(const struct core *core, void (*visit)(void *arg, const struct job *job), void *arg)
{
    const struct core_entry *after = NULL;
    for (const struct core_entry *entry = core->jobs.first; entry != NULL; entry = after) {
        after = entry->after;
        visit(arg, entry->job);
    }
}

uint64_t core_each_job_after(const struct core *core, uint64_t id, size_t max,
    void (*visit)(void *arg, const struct job *job), void *arg)
{
    const struct job_table *jobs = &core->jobs;
    uint64_t last = 0;
    for (size_t i = job_table_after(jobs, id); i < jobs->n_rows && max > 0; i++) {
        const struct job_row *row = &jobs->rows[i];
        const struct job *ahead = i + READ_AHEAD < jobs->n_rows ? row[READ_AHEAD].job : NULL;
        if (ahead != NULL)
            __builtin_prefetch(ahead); // the job's first members are number, owner and state
        if (row->job == NULL)
            continue;
        last = row->id;
        max--;
        visit(arg, row->job);
    }
    return last;
}

void core_each_in_line(
    const struct core *core, const uint32_t *uid, bool (*visit)(void *arg, const struct job *job), void *arg)
{
    const struct queue_class *class = queue_first(sched_queue(core->sched));
    for (; class != NULL; class = queue_next(class)) {
        if (uid != NULL && class->key.uid != *uid)
            continue;
        for (const struct queue_entry *entry = class->first; entry != NULL; entry = entry->after) {
            const struct core_entry *job = core_find(core, entry->job);
            if (job != NULL && !visit(arg, job->job))
                return;
        }
    }
}

size_t core_queue_position(const struct core *core, uint64_t id)
{
    return sched_place(core->sched, id);
}

size_t core_gpu_jobs(const struct core *core, const char *node, uint32_t gpu_index,
    const struct core_entry **entries, size_t max)
{
    size_t found = 0, count = 0;
    _cleanup_free_ struct core_entry **there = core_jobs_on(core, node, &count);
    for (size_t k = 0; k < count; k++) {
        const struct job *job = there[k]->job;
        const struct gpu_grant *grants = job->grants.items;
        for (size_t i = 0; i < job->grants.count && job_holds_gpus(job); i++) {
            const char *where = grants[i].node != NULL ? grants[i].node : job->node;
            if (grants[i].index != gpu_index || strcmp(where, node) != 0)
                continue;
            if (found < max)
                entries[found] = there[k];
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

int64_t core_version(const struct core *core)
{
    return core->now_ms != 0 ? 0 : core->last_ms;
}

char *core_awaited_jobs(const struct core *core)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    for (const struct core_entry *entry = core->jobs.first; entry != NULL; entry = entry->after) {
        struct ask_after *after = NULL;
        size_t count = 0;
        struct error err;
        if (entry->job->state != JOB_QUEUED || entry->job->ask->after == NULL ||
            parse_after(entry->job->ask->after, &after, &count, &err) < 0)
            continue;
        for (size_t i = 0; i < count; i++)
            buffer_printf(&text, "%s%" PRIu64, text.length > 0 ? "," : "", after[i].job);
        free(after);
    }
    return xstrdup(buffer_text(&text));
}
