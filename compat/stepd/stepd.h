/* SPDX-License-Identifier: MIT */
/* slurmstepd: the tasks of a step on one node, for an srun that reads and writes frames (frames.h). */
#pragma once

/* Runs until all tasks have ended and srun has read everything. If srun ends, the tasks are killed. Returns
 * the exit status of the program. */
int stepd_run(int in_fd, int out_fd);
