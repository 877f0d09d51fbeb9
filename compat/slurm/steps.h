/* SPDX-License-Identifier: MIT */
/*
 * The steps of a job as squeue, sacct and scontrol list them. Each is an object like that of its job, with
 * the members of the step in place of the job's, so that the columns of jobs print it.
 */
#pragma once

#include "compat/slurm/jobs.h"

#define SLURM_STEP_WORD  "slurm_step"  // member of such an object: "0", "batch"
#define SLURM_STEP_TASKS "slurm_tasks" // and its number of tasks

/* The batch script, if the job has one, all that is in no step ("extern"), and the recorded steps of the
 * latest attempt. `is_running`: only those that run, without "extern". The caller releases the array. */
int slurm_steps_get(
    struct client *client, const json_t *job, bool is_running, json_t **ret, struct error *err);

/* True for "42" and "42.0" and this step 42.0. */
bool slurm_id_fits_step(const struct slurm_id *id, const json_t *step);

/* Member of a job: for how many seconds its attempt was suspended or parked. */
#define SLURM_SUSPENDED "suspended_seconds"

/* When the processes of a job's last attempt stood still, or ran on, for the last time (wall clock; 0: they
 * never stood still), and for how long they had run when they stood still. `job` is the whole of it, with its
 * events. */
void slurm_last_pause(const json_t *job, int64_t *ret_at_ms, int64_t *ret_ran_ms);

/* The attempts of the job before its last one, each in the form of a job that has ended. The caller owns
 * *ret. */
int slurm_attempts_get(struct client *client, const json_t *job, json_t **ret, struct error *err);

/* Adds to each job of `jobs` what lists lack: `cwd`, which its owner and administrators may see, and
 * SLURM_SUSPENDED of its last attempt. One request for each job. */
int slurm_details_add(struct client *client, json_t *jobs, struct error *err);

/* Of a job of srun that has ended: the signal that ended its step is that of the job, which has only its
 * number as exit code. */
void slurm_steps_settle_end(struct client *client, json_t *job);

/* Member of a job: the highest exit code of its steps, as "1:0". */
#define SLURM_DERIVED "slurm_derived"

/* Adds it, with one request; without an answer, it is left out. */
void slurm_steps_derive(struct client *client, json_t *job);
