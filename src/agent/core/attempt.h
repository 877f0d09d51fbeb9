/* SPDX-License-Identifier: MIT */
/* What an attempt looks like on this node, what the controller wants of it, and the one table of what to do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/spool.h"
#include "job/launch.h"

/* What one look at the spool, the lock and the cgroup shows. */
struct attempt_sight {
    bool has_spec;              // the spool holds everything a shepherd needs
    enum spool_verdict verdict; // settled by link(2), never changes once it is there
    bool is_alive;              // a shepherd holds the lock, or one was started and has not ended
    bool is_watched;            // its end will be noticed without looking
    bool is_ready;              // and that one waits to be let go: a rank of several
    bool has_exit;              // the exit record is there, in the spool or as a durable copy
    bool is_populated;          // processes are left in the step's cgroup although the exit record is there
    bool is_emptied;            // it ran, and its spool entry is gone: what it was is in memory alone
    bool is_checking;           // over, but why it failed is not known yet: its GPUs are being looked at
    struct launch_started started; // job is 0 while there is no such record
    struct launch_exit exit;       // job is 0 while there is no such record
};

/* What the controller wants; a later one never gives way to an earlier one. */
enum attempt_want {
    WANT_NOTHING, // found in the spool; the controller has not spoken of it yet
    WANT_RUN,     // LAUNCH
    WANT_GO,      // GO: its ranks on other nodes are ready as well
    WANT_STOPPED, // STOP, and the living shepherd has been told
    WANT_STOP,    // STOP
    WANT_RELEASED,
    ATTEMPT_WANTS,
};

enum attempt_action {
    ATTEMPT_WAIT,           // the next hint, message or end of a shepherd brings us back
    ATTEMPT_STAGE,          // write the spool entry and start a shepherd on it
    ATTEMPT_START,          // start a shepherd on the entry that is there
    ATTEMPT_ADOPT,          // start a shepherd that finishes what a dead one left
    ATTEMPT_SETTLE,         // win "nogo" so that it never runs, then look again
    ATTEMPT_COMMAND,        // tell the living shepherd to stop it
    ATTEMPT_REPORT_READY,   // report that it only waits to be let go
    ATTEMPT_RELEASE,        // tell the living shepherd to settle the verdict
    ATTEMPT_KILL,           // end what is left in its cgroup, then look again
    ATTEMPT_REPORT_STARTED, // report the open gate
    ATTEMPT_REPORT_EXITED,  // report the exit record
    ATTEMPT_REPORT_RETURNED,
    ATTEMPT_RECOVER, // over, without an entry: report what a durable copy says, or that nothing is known
    ATTEMPT_REMOVE,  // the end is committed: nothing of it is needed any more
    ATTEMPT_ACTIONS,
};

/* Pure; the same sight and want always give the same action, so that asking twice is harmless. */
enum attempt_action attempt_decide(const struct attempt_sight *sight, enum attempt_want want);

const char *attempt_action_name(enum attempt_action action);

/* Frees the records of a sight. */
void attempt_sight_clear(struct attempt_sight *sight);
