/* SPDX-License-Identifier: MIT */
/* The running job that an operand names. */
#pragma once

#include "cli/api/leaving.h"
#include "cli/options/call.h"

/*
 * Finds the only job that `word` names, and waits for its start if it is queued. 0: *ret is the job as in
 * paths of the API, which the caller frees. A positive exit status if it ended, or the user left, before.
 */
int running_job(struct call *call, char *word, enum leaver leaver, char **ret, struct error *err);

/* Waits for the start of a job that was just submitted; results as above. */
int running_wait(struct call *call, const json_t *job, enum leaver leaver, struct error *err);

/* The job has ended: reports how, and returns its exit status. */
int running_report_end(struct call *call, const char *job, struct error *err);
