/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "compat/step/step.h"
#include "compat/step/step_gpus.h"
#include "compat/step/step_layout.h"
#include "compat/step/step_nodes.h"

#define TASKS_MAX 4096U

static int64_t variable(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtoll(text, NULL, 10) : otherwise;
}

/* The requested number; else the job's number, if the step has all its nodes; else one per node. */
static int64_t count_tasks(const struct step *step, size_t all)
{
    const struct slurm_job *job = step->job;
    int64_t nodes = (int64_t)step->nodes.count, each = job->tasks_per_node;
    if (job->tasks > 0)
        return job->tasks;
    if (each > 0)
        return each * nodes;
    if (step->nodes.count == all && variable("SLURM_NTASKS", 0) > 0)
        return variable("SLURM_NTASKS", 0);
    each = variable("SLURM_NTASKS_PER_NODE", 1);
    return nodes * (each > 0 ? each : 1);
}

int step_plan(struct step *step, const struct slurm_job *job, char *const *command, struct error *err)
{
    const char *list = getenv("SLURM_JOB_NODELIST"), *node = getenv("SLURMD_NODENAME");
    _cleanup_strings_ struct strings all = { 0 };
    *step = (struct step){ .job = job, .command = command, .here = STEP_OUTSIDE };
    step->job_id = (uint64_t)(job->job_id > 0 ? job->job_id : variable("SLURM_JOB_ID", 0));
    if (getenv("MGPU_JOB_ID") != NULL && variable("MGPU_JOB_ID", 0) == (int64_t)step->job_id)
        step->here = (uint32_t)variable("MGPU_NODE_RANK", 0);
    int r = list != NULL ? hostlist_expand(list, &all, err) : 0;
    if (r == 0 && all.count == 0)
        strings_add(&all, node != NULL ? node : "localhost");
    if (r == 0)
        r = step_choose_nodes(step, &all, err);
    if (r < 0)
        return r;
    int64_t count = count_tasks(step, all.count), nodes = (int64_t)step->nodes.count;
    if (count > TASKS_MAX)
        return error_set(err, -E2BIG, "Unable to create step: more than %u tasks", TASKS_MAX);
    if (count < nodes)
        count = nodes;
    step->tasks = xcalloc((size_t)count, sizeof(*step->tasks));
    step->count = (uint32_t)count;
    for (uint32_t i = 0; i < step->count; i++)
        step->tasks[i] = (struct step_task){
            .id = i, .pipe_fds = { -1, -1 }, .input_fd = -1, .files = { -1, -1 }, .command = command
        };
    return step_layout(step, err);
}

void step_clear(struct step *step)
{
    strings_clear(&step->nodes);
    free(step->ranks);
    free(step->tasks);
}

/* --- the environment of a task --- */

static void set_number(struct strings *env, const char *name, uint64_t value)
{
    _cleanup_free_ char *text = xasprintf("%" PRIu64, value);
    strings_set_env(env, name, text);
}

uint32_t step_tasks_on(const struct step *step, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < step->count; i++)
        count += step->tasks[i].node == node;
    return count;
}

int64_t step_gpus_on(const struct step *step, uint32_t node)
{
    const struct slurm_job *job = step->job;
    if (job->gpus_per_task > 0)
        return job->gpus_per_task * step_tasks_on(step, node);
    if (job->gpus_per_node > 0)
        return job->gpus_per_node;
    if (job->gpus <= 0 && job->gpu_bind != NULL)
        return variable("SLURM_GPUS_ON_NODE", 0); // all GPUs of the job, to be distributed
    int64_t nodes = (int64_t)step->nodes.count;
    return job->gpus > 0 ? job->gpus / nodes + ((int64_t)node < job->gpus % nodes) : 0;
}

bool step_is_exact(const struct slurm_job *job)
{
    return job->is_exact || job->is_exclusive || job->cpus_per_task > 0;
}

uint64_t step_memory_on(const struct step *step, uint32_t node)
{
    const struct slurm_job *job = step->job;
    uint64_t cpus = step_tasks_on(step, node) * (uint64_t)(job->cpus_per_task > 0 ? job->cpus_per_task : 1);
    return job->memory > 0 ? job->memory : job->memory_per_cpu * cpus;
}

int64_t step_id(const struct step *step)
{
    return step->record != NULL ? field_integer(step->record, "id", 0) : 0;
}

static char *tasks_per_node(const struct step *step)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (uint32_t i = 0, same = 0; i < step->nodes.count; i += same) {
        same = 1;
        while (i + same < step->nodes.count && step_tasks_on(step, i + same) == step_tasks_on(step, i))
            same++;
        buffer_printf(&out, "%s%u", i > 0 ? "," : "", step_tasks_on(step, i));
        if (same > 1)
            buffer_printf(&out, "(x%u)", same);
    }
    return buffer_take(&out);
}

/* "4,5": the tasks of a node. */
static char *task_list(const struct step *step, uint32_t node)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    for (uint32_t i = 0; i < step->count; i++)
        if (step->tasks[i].node == node)
            buffer_printf(&out, "%s%u", out.length > 0 ? "," : "", i);
    return buffer_take(&out);
}

void step_environment(const struct step *step, const struct step_task *task, struct strings *ret)
{
    _cleanup_free_ char *nodes = hostlist_compress(&step->nodes);
    _cleanup_free_ char *per_node = tasks_per_node(step);
    _cleanup_free_ char *siblings = task_list(step, task->node);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = { { "SLURM_PROCID", task->id }, { "SLURM_LOCALID", task->local },
        { "SLURM_NODEID", task->node }, { "SLURM_STEP_NUM_TASKS", step->count },
        { "SLURM_STEP_NUM_NODES", step->nodes.count }, { "SLURM_STEP_ID", (uint64_t)step_id(step) },
        { "SLURM_STEPID", (uint64_t)step_id(step) } };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        set_number(ret, numbers[i].name, numbers[i].value);
    if (!step->job->keeps_counts) {
        set_number(ret, "SLURM_NTASKS", step->count);
        set_number(ret, "SLURM_NPROCS", step->count);
        set_number(ret, "SLURM_NNODES", step->nodes.count);
    }
    strings_set_env(ret, "SLURM_STEP_NODELIST", nodes);
    strings_set_env(ret, "SLURM_TASKS_PER_NODE", per_node);
    strings_set_env(ret, "SLURM_STEP_TASKS_PER_NODE", per_node);
    strings_set_env(ret, "SLURM_GTIDS", siblings);
    const char *address = getenv("SLURM_LAUNCH_NODE_IPADDR"); // of the node on which srun runs
    address = address != NULL ? address : "127.0.0.1";
    strings_set_env(ret, "SLURM_LAUNCH_NODE_IPADDR", address);
    strings_set_env(ret, "SLURM_SRUN_COMM_HOST", address);
    set_number(ret, "SLURM_SRUN_COMM_PORT", 0); // tasks do not connect to srun
    set_number(ret, "SLURM_STEP_LAUNCHER_PORT", 0);
    set_number(ret, "SRUN_DEBUG", step->job->is_quiet ? 2 : 3);
    strings_set_env(ret, "SLURMD_NODENAME", step->nodes.items[task->node]);
    if (step->job->cpus_per_task > 0)
        set_number(ret, "SLURM_CPUS_PER_TASK", (uint64_t)step->job->cpus_per_task);
    if (step->job->tasks_per_node > 0)
        set_number(ret, "SLURM_NTASKS_PER_NODE", (uint64_t)step->job->tasks_per_node);
    strings_set_env(ret, "SLURM_MPI_TYPE", step->job->mpi != NULL ? step->job->mpi : "none");
    step_set_gpus(step, task, ret);
}

char *step_path(const struct step *step, const struct step_task *task, const char *pattern)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    const char *array = getenv("SLURM_ARRAY_JOB_ID"), *index = getenv("SLURM_ARRAY_TASK_ID");
    const char *name = getenv("SLURM_JOB_NAME");
    const struct passwd *user = getpwuid(geteuid());
    for (const char *p = pattern; *p != '\0'; p++) {
        int width = 0;
        if (*p != '%' || p[1] == '\0') {
            buffer_append(&out, p, 1);
            continue;
        }
        for (p++; *p >= '0' && *p <= '9'; p++)
            width = width * 10 + (*p - '0') > 10 ? 10 : width * 10 + (*p - '0');
        switch (*p) {
        case 't': buffer_printf(&out, "%0*u", width, task->id); break;
        case 'n': buffer_printf(&out, "%0*u", width, task->node); break;
        case 'j': buffer_printf(&out, "%0*" PRIu64, width, step->job_id); break;
        case 'J': buffer_printf(&out, "%" PRIu64 ".%" PRId64, step->job_id, step_id(step)); break;
        case 's': buffer_printf(&out, "%0*" PRId64, width, step_id(step)); break;
        case 'A': buffer_printf(&out, "%s", array != NULL ? array : getenv("MGPU_JOB_ID")); break;
        case 'a': buffer_append_text(&out, index != NULL ? index : "4294967294"); break;
        case 'N': buffer_append_text(&out, step->nodes.items[task->node]); break;
        case 'u': buffer_append_text(&out, user != NULL ? user->pw_name : ""); break;
        case 'x': buffer_append_text(&out, name != NULL ? name : ""); break;
        case '\0': p--; break;
        default: buffer_printf(&out, "%s%c", *p == '%' ? "" : "%", *p); break;
        }
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}
