/* SPDX-License-Identifier: MIT */
/* The exit record: created from the results, published in the spool, and copied to disk if it is not
 * fetched. */
#pragma once

#include "job/state.h"
#include "shepherd/init.h"
#include "shepherd/processes/counts.h"
#include "shepherd/processes/leftovers.h"
#include "shepherd/shepherd.h"

#define SIGNALS_TEXT_MAX 400U

/* How the step ended. */
struct ending {
    struct init_status status;
    bool is_killed;        // by the shepherd, or by a user's SIGKILL
    enum job_end stop_end; // the end, if the shepherd stopped the step; END_NONE: it did not
    uint32_t stop_signal;  // first signal of a stop command that reached the step; 0: none
    int64_t grace_ms;      // of the stop
    bool is_outlived;      // other processes ended after the command in a stop, and may have written since
    struct roll killed;    // at the end of the grace period
    struct roll left;      // left running by a command that ended without being stopped
    char signals[SIGNALS_TEXT_MAX]; // "SIGTERM to 2 processes (bash, python3)"; terminated
    struct counts counts;           // from the kernel; set by record_publish()
    struct leftovers leftovers;     // likewise
};

/* Notes which processes received a signal. */
void ending_add_signal(struct ending *ending, int signal, const struct roll *reached);

/* Creates the record; the failure is written to `text`. *ret owns nothing. */
void record_make(const struct shepherd *shepherd, const struct ending *ending, char *text, size_t size,
    struct launch_exit *ret);

/* Writes the identity of shepherd and init to this file in the spool: SPOOL_STARTED or SPOOL_READY. */
int record_write_started(const struct shepherd *shepherd, const char *name);

/* Reserves all memory and spool space needed by record_publish. */
int record_reserve(struct shepherd *shepherd);

/* Writes `exit`, notifies the agent, and waits until the spool directory is removed; if that takes more than
 * a second, writes a durable copy. Returns an enum shepherd_status. */
int record_publish(struct shepherd *shepherd, const struct ending *ending);
