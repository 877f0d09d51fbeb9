/* SPDX-License-Identifier: MIT */
/*
 * What a signal for a program that follows a job does to the job, by the row of the program
 * (cli/api/leaving.h) and by the signals before it: a job that the user ends again by Ctrl-C is killed, and
 * then not waited for. No other signal shortens its grace period: a terminal that goes away sends several.
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
    GOING_LEAVE,   // the program goes, the job stays
    GOING_SHOW,    // its state is printed
    GOING_WAIT,    // nothing: it is ending already
};

struct going {
    enum leaver leaver;
    unsigned stops;      // steps that are done, so that a direct cancel is two at once
    int first_signal;    // the one that began them
    int64_t stopped_ms;  // boot clock: the last of them
    int64_t shown_ms;    // boot clock: the last time its state was shown
    bool is_interrupted; // the step that was returned comes with a SIGINT before it
};

/* What is to be done now: notes that it is done. `is_waiting`: the job has not started. */
enum going_step going_next(struct going *going, bool is_waiting, int signal, int64_t now_ms);

/* True if *last_ms (boot clock, 0: never) is less than a second ago; it becomes now. */
bool going_is_again(int64_t *last_ms, int64_t now_ms);

/* The request of a step up to GOING_KILL, and what it is for the user, with the effect of the next Ctrl-C. */
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
