/* SPDX-License-Identifier: MIT */
/* Values of options of sbatch, srun and salloc that mgpu does not use, or stores as text: invalid ones are
 * nevertheless refused, in Slurm's words, so that a typing error is found. */
#pragma once

#include "base/error.h"
#include "cli/submit/slurm_option.h"

/* -EINVAL or -EDOM if the value is none that Slurm takes; 0 for options that are checked elsewhere, and for a
 * value of NULL. */
int slurm_check_value(const struct slurm_option *option, const char *value, struct error *err);
