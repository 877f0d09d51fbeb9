/* SPDX-License-Identifier: MIT */
/* A job in the foreground: its output on stdout, its changes on stderr, this terminal's signals for it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/api/timeouts.h"

/* What Ctrl-C means to a job that runs without a terminal. */
enum ctrl_c {
    CTRL_C_FORWARD, // SIGINT for its processes; again: it is asked to end; again: it is killed
    CTRL_C_DETACH,
    CTRL_C_CANCEL,
};

struct follow_options {
    enum ctrl_c ctrl_c;
    /* Return as soon as the job has started: *ret_job is what is known then. */
    bool is_until_start;
    uint64_t output_begin; // bytes that the file of -o held before the job
    json_t **ret_job;
    /* -ETIME when it is exhausted; the job goes on. NULL: it never is. */
    struct timeouts *timeouts;
};

/*
 * Stays with the job until it ends and returns the exit status for this process. `job` is the answer to its
 * submission. A job that goes back to the queue is followed through its next attempts. SIGTERM and SIGHUP
 * cancel the job, and so does a reader of stdout that goes away; while it waits SIGINT does too, unless it
 * detaches, and on a terminal the key d leaves it queued.
 */
int follow_job(struct call *call, const json_t *job, const struct follow_options *options, struct error *err);

/* Says on stderr how the job ended: always when it did not exit by itself, else on a terminal only. */
void follow_report(const struct call *call, const char *verb, const json_t *job);

/* Says on stderr why the job waits. */
void follow_show_why(struct call *call, const json_t *job, const struct screen *screen);
