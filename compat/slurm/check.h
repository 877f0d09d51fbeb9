/* SPDX-License-Identifier: MIT */
/* `mgpu-slurm check SCRIPT...`: reports what would differ for scripts written for Slurm. */
#pragma once

/* Prints a line for each option that mgpu does not fully support. The exit status is 1 if sbatch would refuse
 * one of the scripts. */
int slurm_check(int argc, char **argv);
