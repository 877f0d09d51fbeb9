/* SPDX-License-Identifier: MIT */
/*
 * What the commands of Slurm note with a job (`slurm` of struct job_ask): "NAME=value" for each of the
 * options below that was given. A job without notes is not one of theirs, and gets no variables of Slurm.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/strings.h"

#define SLURM_NOTE_KIND           "kind"            // sbatch, srun or salloc; always there
#define SLURM_NOTE_SIGNAL         "signal"          // as it was written: "B:USR1@60"
#define SLURM_NOTE_TASKS          "ntasks"          // only when it was said or follows
#define SLURM_NOTE_TASKS_PER_NODE "ntasks_per_node" // only when it was said
#define SLURM_NOTE_CPUS_PER_TASK  "cpus_per_task"   // likewise
#define SLURM_NOTE_MEM_PER_CPU    "mem_per_cpu"     // likewise; MiB
#define SLURM_NOTE_ARRAY          "array"           // its indexes as they were asked for
#define SLURM_NOTE_PARTITION      "partition"
#define SLURM_NOTE_ACCOUNT        "account"
#define SLURM_NOTE_QOS            "qos"
#define SLURM_NOTE_COMMENT        "comment"

/* The value of that note, or NULL. */
static inline const char *slurm_note(const struct strings *notes, const char *name)
{
    return strings_get_env(notes, name);
}

/* A batch script: on several nodes it runs on the first alone, whose end is that of the job; the others are
 * there for its steps. */
static inline bool slurm_is_batch(const struct strings *notes)
{
    const char *kind = slurm_note(notes, SLURM_NOTE_KIND);
    return kind != NULL && strcmp(kind, "sbatch") == 0;
}
