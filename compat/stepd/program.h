/* SPDX-License-Identifier: MIT */
/* The program of a task: which file it is, and why it cannot be executed, as in slurmstepd. */
#pragma once

/* Executes it as srun finds it: below the task's directory if its name begins with a dot, else by PATH, else
 * under the name itself. A file without "#!" is not a program. Returns only if it cannot be executed: prints
 * why, and returns the exit status of the task, which is the error number. For a child process. */
int program_execute(char *const *words);
