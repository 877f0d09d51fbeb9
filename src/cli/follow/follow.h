/* SPDX-License-Identifier: MIT */
/* Runs a job in the foreground: its output on stdout, its changes on stderr, and signals of this terminal
 * forwarded to it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/api/leaving.h"
#include "cli/api/timeouts.h"
#include "cli/follow/input.h"
#include "cli/options/call.h"

struct follow_options {
    enum leaver leaver;                    // effect of signals and a closed stdout on the job
    void (*show_state)(const json_t *job); // for LEAVE_SHOWS
    void (*show_end)(const json_t *job);   // called when Ctrl-C ends the job; or NULL
    bool passes_signals;                   // SIGUSR1, SIGUSR2 and SIGALRM, to the steps of the job
    /* Return as soon as the job has started: *ret_job is its state at that time. */
    bool is_until_start;
    struct input_feed *input; // standard input for the job, or NULL
    uint64_t output_begin;    // size of the file of -o before the job
    json_t **ret_job;
    /* -ETIME when reached; the job continues. NULL: no timeouts. */
    struct timeouts *timeouts;
};

/*
 * Follows the job until it ends and returns the exit status for this process. `job` is the answer to its
 * submission. A requeued job is followed through its next attempts. On a terminal, the key d leaves it
 * queued.
 */
int follow_job(struct call *call, const json_t *job, const struct follow_options *options, struct error *err);

/* Reports on stderr how the job ended: always if it did not exit normally, else only on a terminal. */
void follow_report(const struct call *call, const char *verb, const json_t *job);

/* Prints on stderr why the job waits. */
void follow_show_why(struct call *call, const json_t *job, const struct screen *screen);

/* Reports that the job was requeued, and why, if the server provides the reason. */
void follow_say_requeued(struct call *call, uint64_t id);
int64_t follow_requeues(const json_t *job); // how many of its attempts were requeued

/* True if this attempt, which was requeued, is certainly without output, because it did not start. */
bool follow_is_without_output(const json_t *job, int64_t attempt);
