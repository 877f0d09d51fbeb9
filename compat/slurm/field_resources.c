/* SPDX-License-Identifier: MIT */
/* Where a job runs and its resources: nodes, tasks, CPUs, memory, GPUs, and the same as TRES. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/state.h"
#include "compat/slurm/steps.h"
#include "job/slurm.h"

#define TEXT(name) char *slurm_text_##name(const json_t *job, int64_t now_ms)

#define MIB_SHIFT 20

static char *number(int64_t value)
{
    return xasprintf("%" PRId64, value);
}

/* --- where --- */

int64_t slurm_job_nodes(const json_t *job)
{
    size_t ranks = json_array_size(json_object_get(job, "ranks"));
    return ranks > 0 ? (int64_t)ranks : field_integer(job, "nodes", 1);
}

TEXT(nodes)
{
    size_t index = 0;
    json_t *part = NULL;
    _cleanup_strings_ struct strings names = { 0 };
    json_array_foreach(json_object_get(job, "ranks"), index, part) if (field_text(part, "node") != NULL)
        strings_add(&names, field_text(part, "node"));
    if (names.count == 0 && field_text(job, "node") != NULL)
        strings_add(&names, field_text(job, "node"));
    return hostlist_compress(&names);
}

TEXT(nodes_or_reason)
{
    const struct slurm_state *state = slurm_state_of(job);
    bool is_placed = field_is_known(job, "node") && !field_is(job, "state", "queued");
    if (is_placed && (!state->is_over || strcmp(state->compact, "CD") == 0))
        return slurm_text_nodes(job, now_ms);
    return xasprintf("(%s)", slurm_reason_of(job));
}

FIELD(batch_host, xstrdup(field_text(job, "node") != NULL ? field_text(job, "node") : "n/a"))
FIELD(node_count, number(slurm_job_nodes(job)))

static int64_t count_tasks(const json_t *job)
{
    const char *tasks = slurm_job_note(job, SLURM_NOTE_TASKS);
    if (json_object_get(job, SLURM_STEP_TASKS) != NULL)
        return field_integer(job, SLURM_STEP_TASKS, 1);
    return tasks != NULL ? strtoll(tasks, NULL, 10) : slurm_job_nodes(job);
}

int64_t slurm_job_cpus(const json_t *job)
{
    double cpus = field_number(job, "cpus", 0);
    return cpus > 0 ? (int64_t)(cpus + 0.999) * slurm_job_nodes(job) : count_tasks(job);
}

FIELD(tasks, number(count_tasks(job)))

/* Allocations have none. */
TEXT(step_tasks)
{
    bool is_step = json_object_get(job, SLURM_STEP_TASKS) != NULL;
    return is_step ? number(count_tasks(job)) : xstrdup("");
}

FIELD(cpus, number(slurm_job_cpus(job)))

char *slurm_memory_text(int64_t bytes)
{
    int64_t mib = bytes >> MIB_SHIFT;
    return mib > 0 && mib % 1024 == 0 ? xasprintf("%" PRId64 "G", mib / 1024)
           : mib > 0                  ? xasprintf("%" PRId64 "M", mib)
                                      : xstrdup("0");
}

FIELD(memory, slurm_memory_text(field_integer(job, "memory", 0)))

TEXT(gres)
{
    int64_t gpus = field_integer(job, "gpus", 0);
    int64_t each = gpus / slurm_job_nodes(job);
    const char *model = field_text(job, "gpu_model");
    if (gpus == 0)
        return xstrdup("N/A");
    return xasprintf("gres:gpu:%s%s%" PRId64, model != NULL ? model : "", model != NULL ? ":" : "", each);
}

/* --- what was asked for, in Slurm's terms --- */

/* "gres:gpu:2" for a note "2"; NULL: it was not requested. */
static char *asked(const json_t *job, const char *note, const char *before)
{
    const char *text = slurm_job_note(job, note);
    return text != NULL && text[0] != '\0' ? xasprintf("%s%s", before, text) : NULL;
}

#define ASKED(name, note, before)                                                                            \
    TEXT(name)                                                                                               \
    {                                                                                                        \
        (void)now_ms;                                                                                        \
        return asked(job, note, before);                                                                     \
    }

ASKED(cpus_per_tres, SLURM_NOTE_CPUS_PER_GPU, "gres:gpu:")
ASKED(mem_per_tres, SLURM_NOTE_MEM_PER_GPU, "gres:gpu:")
ASKED(tasks_per_tres, SLURM_NOTE_TASKS_PER_GPU, "")
ASKED(tres_bind, SLURM_NOTE_GPU_BIND, "gpu:")
ASKED(tres_freq, SLURM_NOTE_GPU_FREQ, "gpu:")
ASKED(tres_per_job, SLURM_NOTE_GPUS, "gres:gpu:")
ASKED(tres_per_socket, SLURM_NOTE_GPUS_PER_SOCKET, "gres:gpu:")
ASKED(tres_per_task, SLURM_NOTE_GPUS_PER_TASK, "gres:gpu:")

/* For a job submitted by mgpu's own commands, the GPUs per node. */
TEXT(tres_per_node)
{
    static const char *const others[] = { SLURM_NOTE_GPUS, SLURM_NOTE_GPUS_PER_SOCKET,
        SLURM_NOTE_GPUS_PER_TASK };
    char *text = asked(job, SLURM_NOTE_GPUS_PER_NODE, "gres:gpu:");
    bool is_other = field_integer(job, "gpus", 0) == 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        _cleanup_free_ char *other = asked(job, others[i], "");
        is_other |= other != NULL;
    }
    return text != NULL || is_other ? text : slurm_text_gres(job, now_ms);
}

TEXT(least_memory_of_cpu)
{
    const char *mib = slurm_job_note(job, SLURM_NOTE_MEM_PER_CPU);
    return mib != NULL ? slurm_memory_text(strtoll(mib, NULL, 10) << MIB_SHIFT) : NULL;
}

/* Per node. A job has at least 16 MiB, but the requested amount is shown here. */
TEXT(least_memory_of_node)
{
    const char *mib = slurm_job_note(job, SLURM_NOTE_MEM);
    if (slurm_job_note(job, SLURM_NOTE_MEM_PER_CPU) != NULL)
        return NULL;
    if (mib != NULL || slurm_job_note(job, SLURM_NOTE_MEM_PER_GPU) != NULL)
        return slurm_memory_text(mib != NULL ? strtoll(mib, NULL, 10) << MIB_SHIFT : 0);
    return slurm_text_memory(job, now_ms);
}

/* Either, for squeue. */
TEXT(least_memory)
{
    char *of_cpu = slurm_text_least_memory_of_cpu(job, now_ms);
    return of_cpu != NULL ? of_cpu : slurm_text_least_memory_of_node(job, now_ms);
}

/* All memory that the job has on its nodes. */
static char *whole_memory(const json_t *job)
{
    return slurm_memory_text(field_integer(job, "memory", 0) * slurm_job_nodes(job));
}

/* In sacct's order: by name. */
TEXT(tres)
{
    int64_t gpus = field_integer(job, "gpus", 0);
    _cleanup_free_ char *memory = whole_memory(job);
    _cleanup_buffer_ struct buffer out = { 0 };
    buffer_printf(&out, "billing=%" PRId64 ",cpu=%" PRId64, slurm_job_cpus(job), slurm_job_cpus(job));
    if (gpus > 0)
        buffer_printf(&out, ",gres/gpu=%" PRId64, gpus);
    if (strcmp(memory, "0") != 0)
        buffer_printf(&out, ",mem=%s", memory);
    buffer_printf(&out, ",node=%" PRId64, slurm_job_nodes(job));
    return buffer_take(&out);
}

/* In scontrol's order: by Slurm's numbers. */
TEXT(tres_by_number)
{
    int64_t gpus = field_integer(job, "gpus", 0), cpus = slurm_job_cpus(job);
    _cleanup_free_ char *memory = whole_memory(job);
    _cleanup_buffer_ struct buffer out = { 0 };
    buffer_printf(&out, "cpu=%" PRId64, cpus);
    if (strcmp(memory, "0") != 0)
        buffer_printf(&out, ",mem=%s", memory);
    buffer_printf(&out, ",node=%" PRId64 ",billing=%" PRId64, slurm_job_nodes(job), cpus);
    if (gpus > 0)
        buffer_printf(&out, ",gres/gpu=%" PRId64, gpus);
    return buffer_take(&out);
}

TEXT(account_nodes)
{
    char *nodes = slurm_text_nodes(job, now_ms);
    if (nodes[0] != '\0')
        return nodes;
    free(nodes);
    return xstrdup("None assigned");
}
