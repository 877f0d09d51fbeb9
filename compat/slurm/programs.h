/* SPDX-License-Identifier: MIT */
/* The tables of options, for the table of commands. */
#pragma once

#include "cli/submit/slurm_option.h"

extern const struct slurm_option slurm_restd_options[];
extern const struct slurm_option slurm_squeue_options[], slurm_sacct_options[], slurm_sinfo_options[],
    slurm_scancel_options[], slurm_scontrol_options[], slurm_sacctmgr_options[], slurm_sshare_options[],
    slurm_sprio_options[], slurm_sdiag_options[], slurm_sstat_options[], slurm_sattach_options[],
    slurm_sbcast_options[], slurm_seff_options[], slurm_sreport_options[];
