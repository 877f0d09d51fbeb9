/* SPDX-License-Identifier: MIT */
/* The variables that a job of Slurm's commands finds in its environment, as sbatch(1) and srun(1) have them.
 */
#pragma once

#include "base/strings.h"
#include "wire/message.h"

#define SLURM_CLUSTER "mgpu" // name of the cluster, where programs want one

/* Sets nothing in a job of others. What the submitting command knows (the directory, the host) is in the
 * job's own environment already. */
void slurm_env_set(struct strings *env, const struct message_launch *launch, const struct job_spec *job,
    const char *job_name, const char *node);
