/* SPDX-License-Identifier: MIT */
/*
 * Options of Slurm's commands kept with a job (`slurm` of struct job_ask): "NAME=value" for each option
 * below that was given. A job without them was not submitted by those commands and gets no SLURM_
 * variables.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/strings.h"

#define SLURM_CLUSTER   "mgpu" // the name of the cluster
#define SLURM_PARTITION "gpu"  // the built-in partition, of all nodes

#define SLURM_NOTE_KIND             "kind"            // sbatch, srun or salloc; always present
#define SLURM_NOTE_SIGNAL           "signal"          // as written: "B:USR1@60"
#define SLURM_NOTE_TASKS            "ntasks"          // if given or implied
#define SLURM_NOTE_TASKS_PER_NODE   "ntasks_per_node" // if given
#define SLURM_NOTE_CPUS_PER_TASK    "cpus_per_task"   // if given
#define SLURM_NOTE_MEM_PER_CPU      "mem_per_cpu"     // if given; MiB
#define SLURM_NOTE_MEM              "mem"             // if given; MiB of each node
#define SLURM_NOTE_GPUS             "gpus"            // if given: "2", "a100:2"; and so are the next three
#define SLURM_NOTE_GPUS_PER_NODE    "gpus_per_node"
#define SLURM_NOTE_GPUS_PER_SOCKET  "gpus_per_socket"
#define SLURM_NOTE_GPUS_PER_TASK    "gpus_per_task"
#define SLURM_NOTE_CPUS_PER_GPU     "cpus_per_gpu"
#define SLURM_NOTE_TASKS_PER_GPU    "ntasks_per_gpu"
#define SLURM_NOTE_MEM_PER_GPU      "mem_per_gpu" // MiB
#define SLURM_NOTE_GPU_BIND         "gpu_bind"
#define SLURM_NOTE_GPU_FREQ         "gpu_freq"
#define SLURM_NOTE_ARRAY            "array" // indexes as requested
#define SLURM_NOTE_ACCOUNT          "account"
#define SLURM_NOTE_QOS              "qos"
#define SLURM_NOTE_COMMENT          "comment"
#define SLURM_NOTE_TIME_MIN         "time_min"         // seconds
#define SLURM_NOTE_LEFT_AT_DEADLINE "left_at_deadline" // seconds from the latest start to Slurm's deadline
#define SLURM_NOTE_LINE             "line"             // the command line that submitted it

/* Variables of a job that are the value of such an option. */
struct slurm_variable {
    const char *name, *note;
};

extern const struct slurm_variable slurm_variables[]; // terminated by a NULL name

/* The value of that option, or NULL. */
static inline const char *slurm_note(const struct strings *notes, const char *name)
{
    return strings_get_env(notes, name);
}

static inline bool slurm_is_batch(const struct strings *notes)
{
    const char *kind = slurm_note(notes, SLURM_NOTE_KIND);
    return kind != NULL && strcmp(kind, "sbatch") == 0;
}

/* True for a job whose srun or salloc waits for its end: it could not follow another attempt. */
static inline bool slurm_has_client(const struct strings *notes)
{
    return slurm_note(notes, SLURM_NOTE_KIND) != NULL && !slurm_is_batch(notes);
}

/* True for a batch script, and for srun outside a job: on several nodes the command runs only on the first,
 * and the job ends with it; the other nodes are for its steps. */
static inline bool slurm_is_on_first(const struct strings *notes)
{
    const char *kind = slurm_note(notes, SLURM_NOTE_KIND);
    return kind != NULL && (strcmp(kind, "sbatch") == 0 || strcmp(kind, "srun") == 0);
}
