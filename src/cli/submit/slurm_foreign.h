/* SPDX-License-Identifier: MIT */
/* Option lines of other schedulers in a script for sbatch: #BSUB of LSF and #PBS of PBS and Torque. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "cli/submit/slurm_option.h"

/* Reads the lines of the first kind that the text has, as the options of sbatch that they mean; those that
 * have no counterpart there are ignored, as by Slurm. `kept` owns the values. -EINVAL, in Slurm's words. */
int slurm_foreign_read(
    const char *text, const struct slurm_reading *reading, struct strings *kept, struct error *err);
