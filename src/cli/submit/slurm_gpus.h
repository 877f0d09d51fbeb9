/* SPDX-License-Identifier: MIT */
/* The counts of GPUs of a request: of the job, a node, a socket and a task. */
#pragma once

#include "base/error.h"
#include "cli/submit/slurm_job.h"

/* Refuses counts that no job can have at a time, in Slurm's words and order, and completes the number of
 * nodes from them. Before the numbers of nodes and tasks are settled. -EINVAL. */
int slurm_gpus_check(struct slurm_job *job, struct error *err);

/* Stores the job's request in terms of GPUs, which scontrol displays. */
void slurm_gpus_note(struct slurm_job *job);
