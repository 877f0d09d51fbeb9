/* SPDX-License-Identifier: MIT */
/*
 * A job may specify its number of GPUs in total, per node, per socket and per task. Slurm compares these
 * numbers in a fixed order, and reports the first mismatch.
 */
#include "cli/submit/slurm_gpus.h"

#include <errno.h>
#include <inttypes.h>

#include "base/memory.h"
#include "base/strings.h"
#include "job/slurm.h"

#define MIB_SHIFT 20

/* True if a number is requested and is not a multiple of the other. */
static bool is_odd(int64_t number, int64_t part)
{
    return number > 0 && part > 0 && number % part != 0;
}

static bool is_below(int64_t number, int64_t part)
{
    return number > 0 && part > number;
}

/* True if both are requested and their quotient differs from the third number, if that was given. */
static bool differs(int64_t number, int64_t part, int64_t quotient)
{
    return number > 0 && part > 0 && quotient > 0 && number / part != quotient;
}

static int refuse(const char *words, struct error *err)
{
    (void)error_set(err, -EINVAL, "%s", words);
    (void)error_hint(err, "Invalid generic resource (gres) specification");
    return error_mark(err, SLURM_BOTH, -EINVAL);
}

int slurm_gpus_check(struct slurm_job *job, struct error *err)
{
    int64_t all = job->gpus, node = job->gpus_per_node, socket = job->gpus_per_socket,
            task = job->gpus_per_task;
    bool has_tasks = job->tasks > 0 || job->nodes > 0 || job->tasks_per_node > 0;
    if (task > 0 && job->tasks_per_gpu > 0)
        return error_mark(err, SLURM_FATAL,
            error_set(err, -EINVAL,
                "--gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU"));
    _cleanup_free_ char *between = xasprintf(
        "Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes "
        "(%" PRId64 ") doesn't fall between min_nodes (%" PRId64 ") and max_nodes (%" PRId64 ") boundaries.",
        all > 0 && node > 0 ? all / node : 0, job->nodes, job->nodes);
    const struct {
        bool is_wrong;
        const char *words;
    } rules[] = {
        { is_below(all, node) || is_below(all, task) || is_below(all, socket),
            "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket" },
        { is_below(node, task) || is_below(node, socket), "Failed to ensure --gpus >= --gpus-per-task" },
        { socket > 0 && job->sockets <= 0,
            "--gpus-per-socket option requires --sockets-per-node specification" },
        { job->cpus_per_gpu > 0 && job->cpus_per_task > 0,
            "--cpus-per-gpu is mutually exclusive with --cpus-per-task" },
        { is_odd(all, node),
            "Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node" },
        { differs(all, node, job->nodes), between },
        { is_odd(node, socket),
            "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket." },
        { differs(node, socket, job->sockets),
            "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required "
            "number of sockets differ from --sockets-per-node." },
        { is_odd(job->tasks, job->tasks_per_gpu),
            "Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu." },
        { is_odd(all, task), "Failed to validate job spec, --gpus not multiple of --gpus-per-task" },
        { differs(all, task, job->tasks), "Failed to validate job spec. Based on --gpus and --gpus-per-task "
                                          "number of requested tasks differ "
                                          "from -n/--ntasks." },
        { task > 0 && !has_tasks && all <= 0,
            "Failed to validate job spec. --gpus-per-task used without either --gpus or -n/--ntasks is not "
            "allowed." },
        { is_odd(node, task),
            "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task." },
        { differs(node, task, job->tasks_per_node),
            "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested "
            "number of tasks per node differ from --ntasks-per-node." },
        { is_odd(socket, task),
            "Failed to validate job spec, --gpus-per-socket not multiple of --gpus-per-task." },
        { is_below(all, job->nodes), "Failed to validate job spec, --gpus < -N" },
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (rules[i].is_wrong)
            return refuse(rules[i].words, err);
    }
    if (all > 0 && node > 0)
        job->nodes = all / node;
    if (task > 0 && node > 0 && job->nodes > 0 && job->tasks * task > job->nodes * node)
        return error_set(err, -EINVAL, "Requested node configuration is not available");
    return 0;
}

static void note_count(struct slurm_job *job, const char *name, int64_t count)
{
    const char *model = job->gpu_model != NULL ? job->gpu_model : "";
    _cleanup_free_ char *text = xasprintf("%s%s%" PRId64, model, model[0] != '\0' ? ":" : "", count);
    if (count >= 0)
        slurm_job_note_set(job, name, text);
}

static void note_number(struct slurm_job *job, const char *name, int64_t number)
{
    _cleanup_free_ char *text = xasprintf("%" PRId64, number);
    if (number > 0)
        slurm_job_note_set(job, name, text);
}

void slurm_gpus_note(struct slurm_job *job)
{
    const char *frequency = strings_get_env(&job->defined, "gpu-freq");
    note_count(job, SLURM_NOTE_GPUS, job->gpus);
    note_count(job, SLURM_NOTE_GPUS_PER_NODE, job->gpus_per_node);
    note_count(job, SLURM_NOTE_GPUS_PER_SOCKET, job->gpus_per_socket);
    note_count(job, SLURM_NOTE_GPUS_PER_TASK, job->gpus_per_task);
    note_number(job, SLURM_NOTE_CPUS_PER_GPU, job->cpus_per_gpu);
    note_number(job, SLURM_NOTE_TASKS_PER_GPU, job->tasks_per_gpu);
    note_number(job, SLURM_NOTE_MEM_PER_GPU, (int64_t)(job->memory_per_gpu >> MIB_SHIFT));
    note_number(job, SLURM_NOTE_MEM, (int64_t)(job->memory >> MIB_SHIFT));
    if (job->gpu_bind != NULL)
        slurm_job_note_set(job, SLURM_NOTE_GPU_BIND, job->gpu_bind);
    if (frequency != NULL)
        slurm_job_note_set(job, SLURM_NOTE_GPU_FREQ, frequency);
}
