/* SPDX-License-Identifier: MIT */
/* The environment variables of a job submitted by Slurm's commands, as in sbatch(1) and srun(1). */
#pragma once

#include "base/strings.h"
#include "wire/message.h"

/* Sets nothing for other jobs. Variables known to the submitting command (directory, host) are already in the
 * job's own environment. */
void slurm_env_set(struct strings *env, const struct message_launch *launch, const struct job_spec *job,
    const char *job_name, const char *node);
