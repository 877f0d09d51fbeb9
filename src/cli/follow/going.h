/* SPDX-License-Identifier: MIT */
/*
 * The effect of a signal for a program that follows a job on the job, from the program's row
 * (cli/api/leaving.h) and the signals before it. If the user ends a job again with Ctrl-C, it is killed, and
 * then not waited for. No other signal shortens its grace period: a terminal that is closed sends several.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/api/leaving.h"

enum going_step {
    GOING_SIGNAL, // SIGINT for its processes
    GOING_CANCEL,
    GOING_KILL,
    GOING_ABANDON, // nothing more: its end is not waited for
    GOING_LEAVE,   // the program exits, the job continues
    GOING_SHOW,    // its state is printed
    GOING_WAIT,    // nothing: it is ending already
};

struct going {
    enum leaver leaver;
    unsigned stops;      // steps already taken, so that a direct cancel counts as two
    int first_signal;    // the one that began them
    int64_t stopped_ms;  // boot clock: the last of them
    int64_t shown_ms;    // boot clock: the last time its state was shown
    bool is_interrupted; // a SIGINT is sent before the returned step
};

/* What is to be done now: notes that it is done. `is_waiting`: the job has not started. */
enum going_step going_next(struct going *going, bool is_waiting, int signal, int64_t now_ms);

/* True if *last_ms (boot clock, 0: never) is less than a second ago; it becomes now. */
bool going_is_again(int64_t *last_ms, int64_t now_ms);

/* The request of a step up to GOING_KILL, and its description for the user, with the effect of the next
 * Ctrl-C. */
struct going_request {
    const char *action, *body, *text;
};

const struct going_request *going_request(enum going_step step);

/* The signals that a program takes while it follows a job, without those that are ignored: with
 * `passes_signals` also those that it passes on to the steps. */
void going_signals(sigset_t *ret, bool passes_signals);

/* The body of the request that passes the signal on; NULL: it is none of them. */
const char *going_passed(int signal);

/* Whether Ctrl-C leaves a job that waits as it is. */
bool going_leaves_queued(enum leaver leaver);
