/* SPDX-License-Identifier: MIT */
/* What only the whole record of a job has, not its place in a list: its earlier attempts and its directory.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/api/client.h"

#define SLURM_SUSPENDED "suspended_seconds" // member of a job: for how long its attempt was suspended

/* The attempts of the job before its last one, each in the form of a job that has ended. The caller owns
 * *ret. */
int slurm_attempts_get(struct client *client, const json_t *job, json_t **ret, struct error *err);

/* Adds to each job of `jobs` what lists lack: `cwd`, which its owner and administrators may see, and
 * SLURM_SUSPENDED of its last attempt. One request for each job. */
int slurm_details_add(struct client *client, json_t *jobs, struct error *err);
