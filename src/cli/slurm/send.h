/* SPDX-License-Identifier: MIT */
/* Sends the requests of sbatch, srun and salloc. */
#pragma once

#include "cli/submit/slurm_job.h"

/* Sends the request, with `script` as its text unless NULL. Takes ownership of `command`. Errors use Slurm's
 * messages. */
int slurm_job_send(
    struct slurm_job *job, json_t *command, const char *script, json_t **ret, struct error *err);
