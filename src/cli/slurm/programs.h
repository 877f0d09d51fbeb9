/* SPDX-License-Identifier: MIT */
/* The tables of options, for the table of commands. */
#pragma once

#include "cli/submit/slurm_option.h"

extern const struct slurm_option slurm_restd_options[];
extern const struct slurm_option slurm_squeue_options[], slurm_sacct_options[], slurm_sinfo_options[],
    slurm_scancel_options[], slurm_scontrol_options[], slurm_other_options[];
