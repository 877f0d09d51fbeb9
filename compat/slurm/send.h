/* SPDX-License-Identifier: MIT */
/* Sends the requests of sbatch, srun and salloc. */
#pragma once

#include "cli/submit/slurm_job.h"

/* Prints on standard error whether the job is held, and that it waits. */
void slurm_job_print_held(const struct slurm_job *job);
void slurm_job_print_waiting(const struct slurm_job *job, int64_t id);

/* With --immediate, waits until the job has its resources. -EBUSY, with Slurm's message, if it did not get
 * them in time; the job has then ended. */
int slurm_job_await_immediate(struct slurm_job *job, const json_t *made, struct error *err);

/* The exit status for an error that has been printed: SLURM_EXIT_IMMEDIATE, or `status`. */
int slurm_exit_immediate(const struct error *err, int status);

/* Sends the request, with `script` as its text unless NULL. Takes ownership of `command`. Errors use Slurm's
 * messages. */
int slurm_job_send(
    struct slurm_job *job, json_t *command, const char *script, json_t **ret, struct error *err);

/* --test-only: prints where and when the job would start, and submits nothing. Takes `command`; `script` may
 * be NULL. */
int slurm_job_test(struct slurm_job *job, json_t *command, const char *script, struct error *err);

/* Refuses the ":" that separates the components of a heterogeneous job: as the first operand, or in a command
 * (`is_command`) anywhere but at the end. The operands begin at `first`. -ENOTSUP. */
int slurm_job_check_single(int argc, char **argv, int first, bool is_command, struct error *err);
