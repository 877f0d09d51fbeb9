/* SPDX-License-Identifier: MIT */
/* What follows from the end of a job: for its owner, after the outcome itself. */
#pragma once

#include "job/job.h"
#include "job/usage.h"

/* What the owner can do after this end, one or two sentences; NULL: the outcome says it all. `usage` may be
 * NULL. */
const char *job_end_advice(const struct job *job, const struct job_usage *usage);

/* What the last lines of the output say about the end, for those who may read them; NULL: nothing. The caller
 * frees it. */
char *job_end_cause(const struct job *job, const struct job_usage *usage);
