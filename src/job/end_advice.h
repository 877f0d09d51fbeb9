/* SPDX-License-Identifier: MIT */
/* Advice for the owner after the end of a job. */
#pragma once

#include "job/job.h"
#include "job/usage.h"

/* Advice in one or two sentences; NULL: the outcome needs none. `usage` may be
 * NULL. */
const char *job_end_advice(const struct job *job, const struct job_usage *usage);

/* The cause of the end according to the last lines of the output, for callers who may read them; NULL:
 * unknown. The caller frees it. */
char *job_end_cause(const struct job *job, const struct job_usage *usage);
