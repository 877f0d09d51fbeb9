/* SPDX-License-Identifier: MIT */
/*
 * #SBATCH lines in a script that `mgpu submit` reads. Options and values are those of sbatch
 * (cli/submit/slurm_option.h), and they make the same request. The job itself is an ordinary mgpu job, with
 * mgpu's variables and output file. Options without effect are reported once.
 */
#pragma once

#include "base/error.h"
#include "cli/options/call.h"

/* Sets the options of the #SBATCH lines of `text`, the head of the script `path`. */
int sbatch_apply(struct call *call, const char *text, const char *path, struct error *err);
