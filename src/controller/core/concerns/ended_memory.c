/* SPDX-License-Identifier: MIT */
/*
 * What an attempt that has ended used on its GPUs. Samples arrive once a second, and attempts end between
 * them. The processes have ended and their memory is free, but the last sample, and one that was on its way,
 * still show it. Such processes are therefore removed from the samples. Memory that a GPU of an ended attempt
 * still holds later, or that the agent has found there, stays visible.
 */
#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/job.h"

#define ON_ITS_WAY_MS 2000 // a sample that was read before the end

/* The process of a waiting adoption has no attempt yet. */
static bool has_just_ended(const struct core *core, const struct gpu_process *process)
{
    const struct core_entry *entry = process->attempt != 0 ? core_find(core, process->job) : NULL;
    if (entry == NULL || entry->job->attempt != process->attempt || job_state_is_active(entry->job->state))
        return false;
    return entry->job->ended_ms == 0 || core->now_ms - entry->job->ended_ms < ON_ITS_WAY_MS;
}

static void take_out(struct gpu_state *gpu, size_t at)
{
    struct gpu_process *processes = gpu->processes.items;
    uint64_t held = processes[at].is_memory_known != 0 ? processes[at].memory_bytes : 0;
    gpu->memory_used_bytes -= held < gpu->memory_used_bytes ? held : gpu->memory_used_bytes;
    free(processes[at].command);
    free(processes[at].container);
    processes[at] = processes[--gpu->processes.count];
}

static void take_out_ended(struct core *core, struct core_node *node)
{
    struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        const struct gpu_process *processes = gpus[i].processes.items;
        for (size_t k = gpus[i].is_unclean != 0 ? 0 : gpus[i].processes.count; k-- > 0;)
            if (has_just_ended(core, &processes[k]))
                take_out(&gpus[i], k);
    }
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    for (size_t rank = 0; rank < job_node_count(entry->job); rank++) {
        struct core_node *node = core_find_node(core, job_node_name(entry->job, rank));
        if (node != NULL)
            take_out_ended(core, node);
    }
}

const struct core_concern core_concern_ended_memory = {
    .name = "ended memory",
    .events = CORE_ON_OVER,
    .event = on_event,
    .sample = take_out_ended,
};
