/* SPDX-License-Identifier: MIT */
/* The limits (ulimit) of srun, which also apply to its tasks on all nodes. */
#pragma once

#include "base/strings.h"

/* Adds the soft limits of this process as variables "SLURM_RLIMIT_NOFILE=1024". */
void rlimits_collect(struct strings *variables);

/* Sets the soft limits of this process from such variables, as far as its hard limits allow. */
void rlimits_apply(const struct strings *variables);

/* Removes such variables from the environment of this process. */
void rlimits_forget(void);
