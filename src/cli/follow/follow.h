/* SPDX-License-Identifier: MIT */
/* Runs a job in the foreground: its output on stdout, its changes on stderr, and signals of this terminal
 * forwarded to it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/options/call.h"
#include "cli/api/timeouts.h"

/* The effect of Ctrl-C on a job without a terminal. */
enum ctrl_c {
    CTRL_C_FORWARD, // SIGINT for its processes; the second time it is stopped, the third time killed
    CTRL_C_DETACH,  // this program goes, and so it does on any other signal and without a reader
    CTRL_C_CANCEL,
    CTRL_C_TWICE, // the first time its state is shown, again within a second it gets SIGINT and is stopped
};

struct follow_options {
    enum ctrl_c ctrl_c;
    void (*show_state)(const json_t *job); // for CTRL_C_TWICE
    /* Return as soon as the job has started: *ret_job is its state at that time. */
    bool is_until_start;
    uint64_t output_begin; // size of the file of -o before the job
    json_t **ret_job;
    /* -ETIME when reached; the job continues. NULL: no timeouts. */
    struct timeouts *timeouts;
};

/*
 * Follows the job until it ends and returns the exit status for this process. `job` is the answer to its
 * submission. A requeued job is followed through its next attempts. SIGTERM, SIGHUP, and a closed stdout
 * cancel the job; while it waits, so does SIGINT. None of them does with CTRL_C_DETACH. On a terminal, the
 * key d leaves it queued.
 */
int follow_job(struct call *call, const json_t *job, const struct follow_options *options, struct error *err);

/* Reports on stderr how the job ended: always if it did not exit by itself, else only on a terminal. */
void follow_report(const struct call *call, const char *verb, const json_t *job);

/* Prints on stderr why the job waits. */
void follow_show_why(struct call *call, const json_t *job, const struct screen *screen);

/* For CTRL_C_TWICE: true if *last_ms (boot clock, 0: never) is less than a second ago; it becomes now. */
bool follow_is_again(int64_t *last_ms);
