/* SPDX-License-Identifier: MIT */
/*
 * The steps of a job as squeue, sacct and scontrol list them. Each is an object like that of its job, with
 * the members of the step in place of the job's, so that the columns of jobs print it.
 */
#pragma once

#include "compat/slurm/jobs.h"

#define SLURM_STEP_WORD  "slurm_step"  // member of such an object: "0", "batch"
#define SLURM_STEP_TASKS "slurm_tasks" // and its number of tasks

/* The batch script, if the job has one, all processes outside steps ("extern"), and the recorded steps of the
 * latest attempt. `is_running`: only running steps, without "extern". The caller releases the array. */
int slurm_steps_get(
    struct client *client, const json_t *job, bool is_running, json_t **ret, struct error *err);

/* True for "42" and "42.0" and this step 42.0. */
bool slurm_id_fits_step(const struct slurm_id *id, const json_t *step);

/* Member of a job: the number of seconds for which its attempt was suspended or parked. */
#define SLURM_SUSPENDED "suspended_seconds"

/* When the processes of a job's last attempt were last stopped or continued (wall clock; 0: they were never
 * stopped), and their run time when they were stopped. `job` is the complete record, with its events. */
void slurm_last_pause(const json_t *job, int64_t *ret_at_ms, int64_t *ret_ran_ms);

/* The attempts of the job before its last one, each in the form of a job that has ended. The caller owns
 * *ret. */
int slurm_attempts_get(struct client *client, const json_t *job, json_t **ret, struct error *err);

/* Adds to each job of `jobs` members that lists lack: `cwd`, which its owner and administrators may see, and
 * SLURM_SUSPENDED of its last attempt. Makes one request per job. */
int slurm_details_add(struct client *client, json_t *jobs, struct error *err);

/* For an ended job of srun: the signal that ended its step counts as the job's, whose exit code only contains
 * its number. */
void slurm_steps_settle_end(struct client *client, json_t *job);

/* Member of a job: the highest exit code of its steps, as "1:0". */
#define SLURM_DERIVED "slurm_derived"

/* Adds it, with one request; omitted without an answer. */
void slurm_steps_derive(struct client *client, json_t *job);
