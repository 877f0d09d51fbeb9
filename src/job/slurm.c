/* SPDX-License-Identifier: MIT */
#include "job/slurm.h"

#include <stddef.h>

const struct slurm_variable slurm_variables[] = {
    { "SLURM_JOB_ACCOUNT", SLURM_NOTE_ACCOUNT },
    { "SLURM_JOB_QOS", SLURM_NOTE_QOS },
    { "SLURM_NTASKS", SLURM_NOTE_TASKS },
    { "SLURM_NPROCS", SLURM_NOTE_TASKS },
    { "SLURM_NTASKS_PER_NODE", SLURM_NOTE_TASKS_PER_NODE },
    { "SLURM_CPUS_PER_TASK", SLURM_NOTE_CPUS_PER_TASK },
    { "SLURM_MEM_PER_CPU", SLURM_NOTE_MEM_PER_CPU },
    { NULL, NULL },
};
