/* SPDX-License-Identifier: MIT */
/* The exit record: made from what was learned, published in the spool, and copied to disk when nobody comes.
 */
#pragma once

#include "job/state.h"
#include "shepherd/counts.h"
#include "shepherd/init.h"
#include "shepherd/shepherd.h"

/* How the step came to its end. */
struct ending {
    struct init_status status;
    bool is_killed;        // by us, or for a user who sent SIGKILL
    enum job_end stop_end; // how it ends when the shepherd stopped it by itself; END_NONE: it did not
    uint32_t stop_signal;  // first signal of a stop command that reached the step, 0: none
    struct counts counts;  // of the kernel; filled by record_publish()
};

/* The record's contents; `text` gets the failure in words. Nothing in *ret is owned. */
void record_make(const struct shepherd *shepherd, const struct ending *ending, char *text, size_t size,
    struct launch_exit *ret);

/* Writes who the shepherd and the init are, under this name in the spool: SPOOL_STARTED or SPOOL_READY. */
int record_write_started(const struct shepherd *shepherd, const char *name);

/* Reserves all the memory and the space in the spool that record_publish needs. */
int record_reserve(struct shepherd *shepherd);

/* Writes `exit`, tells the agent, and stays until the spool directory was taken away; after a second without
 * that it leaves a durable copy. Returns an enum shepherd_status. */
int record_publish(struct shepherd *shepherd, const struct ending *ending);
