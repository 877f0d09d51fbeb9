/* SPDX-License-Identifier: MIT */
/* --distribution of sbatch, srun and salloc, and the nodes that are listed for each task. */
#pragma once

#include "cli/submit/slurm_job.h"

enum slurm_layout { SLURM_LAYOUT_BLOCK, SLURM_LAYOUT_CYCLIC, SLURM_LAYOUT_PLANE, SLURM_LAYOUT_ARBITRARY };

/* The distribution of tasks to nodes for a valid value of --distribution. NULL: in blocks. */
enum slurm_layout slurm_distribution_layout(const char *value);

/* Of "plane=4": 4. Without a number it is that of SLURM_DIST_PLANESIZE; 0: it is nowhere. */
uint32_t slurm_distribution_plane(const char *value);

/* The value in the form of SLURM_DISTRIBUTION: "block:cyclic" for "*:*". The caller frees it. */
char *slurm_distribution_text(const char *value);

/* Reads the file of `nodelist` if it is the name of one, and for srun without a list that of SLURM_HOSTFILE,
 * which is a node for each task. With the arbitrary layout sets `task_nodes`, `nodelist` and the number of
 * tasks of the job. -EINVAL if there are fewer nodes than tasks. */
int slurm_distribution_settle(struct slurm_job *job, struct error *err);
