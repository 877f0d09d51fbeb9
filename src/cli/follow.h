/* SPDX-License-Identifier: MIT */
/* A job in the foreground: its output on stdout, its changes on stderr, this terminal's signals for it. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/call.h"

/*
 * Stays with the job until it ends and returns the exit status for this process. `job` is the answer to its
 * submission. SIGINT, SIGTERM and SIGHUP cancel the job, and so does a reader of stdout that goes away.
 */
int follow_job(struct call *call, const json_t *job, struct error *err);

/* Says on stderr how the job ended: always when it did not exit by itself, else on a terminal only. */
void follow_report(const struct call *call, const char *verb, const json_t *job);
