/* SPDX-License-Identifier: MIT */
/* The program of a task: which file it is, and why it cannot be executed, as slurmstepd has it. */
#pragma once

/* Executes it as srun finds it: below the directory of the task if its name begins with a dot, else by PATH,
 * else under the name itself. A file without "#!" is no program. Returns only if it cannot be executed:
 * prints why, and returns the exit status of the task, which is the number of the error. For a child process.
 */
int program_execute(char *const *words);
