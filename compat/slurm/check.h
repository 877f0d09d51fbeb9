/* SPDX-License-Identifier: MIT */
/* `mgpu-slurm check SCRIPT...`: what would differ for scripts that were written for Slurm. */
#pragma once

/* Prints a line for each option that mgpu does not do in full. The exit status: 1 if sbatch would refuse one
 * of the scripts. */
int slurm_check(int argc, char **argv);
