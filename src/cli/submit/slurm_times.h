/* SPDX-License-Identifier: MIT */
/* The times of a request: --time, --time-min, --deadline, --begin and --immediate, which depend on each
 * other. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "cli/submit/slurm_job.h"

/* Adds limit and latest start to the request: the job has to end by its deadline, which leaves it the least
 * time that it can use. -EINVAL, in slurmctld's words, for times that contradict each other at `now_ms` (wall
 * clock). */
int slurm_settle_times(struct slurm_job *job, int64_t now_ms, struct error *err);
