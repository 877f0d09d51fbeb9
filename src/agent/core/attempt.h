/* SPDX-License-Identifier: MIT */
/* The observed state of an attempt on this node, the state wanted by the controller, and the table of
 * actions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/spool.h"
#include "job/launch.h"

/* An observation of spool, lock and cgroup. */
struct attempt_observation {
    bool has_spec;              // the spool holds everything a shepherd needs
    enum spool_verdict verdict; // settled by link(2); final
    bool is_alive;              // a shepherd holds the lock, or one was started and has not ended
    bool is_watched;            // its end will be detected without polling
    bool is_ready;              // and it waits for GO: a rank of several
    bool has_exit;              // the exit record exists, in the spool or as a durable copy
    bool is_populated;          // processes are left in the step's cgroup although the exit record exists
    bool is_emptied;            // it ran, and its spool entry is missing: its data is only in memory
    bool is_checking; // ended, but the reason of a failure is unknown until its GPUs have been checked
    struct launch_started started; // job is 0 if there is no such record
    struct launch_exit exit;       // job is 0 if there is no such record
};

/* What the controller wants; a lower value never replaces a higher one. */
enum attempt_want {
    WANT_NOTHING,  // found in the spool; the controller has not mentioned it yet
    WANT_PREPARED, // PREPARE: to be made ready up to the gate; there is no LAUNCH yet
    WANT_DROPPED,  // a prepared attempt that was withdrawn, or that differs from its LAUNCH
    WANT_RUN,      // LAUNCH
    WANT_GO,       // GO: the ranks on other nodes are ready too
    WANT_STOPPED,  // STOP, and the running shepherd has received it
    WANT_STOP,     // STOP
    WANT_RELEASED,
    ATTEMPT_WANTS,
};

enum attempt_action {
    ATTEMPT_WAIT,           // nothing to do until the next hint, message or end of a shepherd
    ATTEMPT_STAGE,          // write the spool entry and start a shepherd on it
    ATTEMPT_START,          // start a shepherd for the existing entry
    ATTEMPT_ADOPT,          // start a shepherd that finishes the work of a dead one
    ATTEMPT_SETTLE,         // decide "nogo" so that it never runs, then check again
    ATTEMPT_COMMAND,        // order the running shepherd to stop it
    ATTEMPT_REPORT_READY,   // report that it waits for GO
    ATTEMPT_RELEASE,        // order the running shepherd to decide the verdict
    ATTEMPT_KILL,           // kill the processes left in its cgroup, then check again
    ATTEMPT_REPORT_STARTED, // report the open gate
    ATTEMPT_REPORT_EXITED,  // report the exit record
    ATTEMPT_REPORT_RETURNED,
    ATTEMPT_RECOVER, // ended, without an entry: report the durable copy, or that the result is unknown
    ATTEMPT_REMOVE,  // the end is committed: remove everything
    ATTEMPT_ACTIONS,
};

/* True if the controller has not launched it: it is not reported, and may be removed at any time. */
bool attempt_is_speculative(enum attempt_want want);

/* Pure: the same observation and want always result in the same action, so repeated calls are harmless. */
enum attempt_action attempt_decide(const struct attempt_observation *observed, enum attempt_want want);

const char *attempt_action_name(enum attempt_action action);

/* Frees the records of an observation. */
void attempt_observation_clear(struct attempt_observation *observed);
