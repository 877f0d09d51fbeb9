/* SPDX-License-Identifier: MIT */
/* The states of a job, the ways it can end, and the one table of what may follow what. */
#pragma once

#include <stdbool.h>

enum job_state {
    JOB_NEW,      // not submitted yet; never stored
    JOB_QUEUED,   // waits for resources
    JOB_STARTING, // an attempt is committed; its verdict is not known to the controller yet
    JOB_RUNNING,  // the command of the attempt was executed
    JOB_STOPPING, // the end of the attempt was asked for and has not been seen yet
    JOB_DONE,     // final
    JOB_STATES,
};

enum job_event_type {
    EVENT_SUBMITTED,    // by its owner, or as an element of an array
    EVENT_ALLOCATED,    // got resources: the next attempt begins
    EVENT_STARTED,      // the shepherd opened the gate
    EVENT_STOP,         // somebody cancelled it
    EVENT_RETURNED,     // proof that the attempt never executed anything
    EVENT_ENDED,        // proof that the attempt is over
    EVENT_EDITED,       // what it asks for was changed
    EVENT_HELD,         // it may not start
    EVENT_RELEASED,     // a hold was taken away
    EVENT_PREEMPTED,    // its attempt is to end, and it goes back to the queue
    EVENT_REQUEUED,     // proof that the attempt is over; it waits again
    EVENT_SPLIT,        // an element was split off this array
    EVENT_MEMBER,       // an element of this array is done
    EVENT_CLUSTER,      // of job 0: the cluster changed
    EVENT_IDLE,         // it has not used its GPUs for long, or uses them again
    EVENT_SUSPENDED,    // all of it is to stand still; it keeps what it holds
    EVENT_CONTINUED,    // and is to go on
    EVENT_SIGNALLED,    // somebody sent it a signal
    EVENT_STEP_STARTED, // a step of it begins
    EVENT_STEP_ENDED,   // and has ended
    EVENT_TYPES,
};

/* Why a job is done; the words of the API's `ended_by`. */
enum job_end {
    END_NONE,
    END_EXIT,   // the command exited; `exit_code` holds its status
    END_SIGNAL, // a signal that mgpu did not send ended the command
    END_CANCELLED,
    END_START_FAILED, // the command could not be executed; `exit_code` is 125, 126 or 127
    END_SETUP_FAILED, // the setup command failed
    END_UNKNOWN,      // it ran, but its status died with its shepherd and its init
    END_REBOOT,       // its node started anew
    END_TIME_LIMIT,   // it ran longer than it asked for; `exit_code` is 124
    END_DEADLINE,     // it could not start before its deadline
    END_DEPENDENCY,   // its dependency can never be satisfied
    END_OOM,          // the kernel ended it for want of memory; `exit_code` is 137
    END_GPU_FAULT,    // the command failed after an error of the driver on one of its GPUs
    END_IDLE_TIMEOUT, // it did not use its GPUs for too long; `exit_code` is 124
    END_RELEASED,     // the process of a lease is over; how it ended only its parent knows
    END_NODE_LOST,    // its node was fenced, or was out of reach for longer than the job's lease of it
    END_KINDS,
};

/* Why an attempt is over and its job waits for the next one. */
enum requeue_cause {
    REQUEUE_PREEMPTED,  // it gave way to others: it keeps its place
    REQUEUE_ASKED,      // by somebody who may control it
    REQUEUE_TIME_LIMIT, // it used up its time, and asked to go on later
    REQUEUE_FAILED,     // it failed in a way in which it asked to be tried again
    REQUEUE_NODE_LOST,  // its node was lost, and it asked to go on elsewhere
    REQUEUE_CAUSES,
};

/*
 * Returns true and the next state when `type` may happen in `state`. `goes_on`: there is more to come after
 * this event, because the attempt is put back into the queue or elements of the array are left or open.
 */
bool job_transition(enum job_state state, enum job_event_type type, bool goes_on, enum job_state *ret_next);

const char *job_state_name(enum job_state state);
const char *job_event_name(enum job_event_type type);
const char *job_end_name(enum job_end end);
const char *requeue_cause_name(enum requeue_cause cause);

/* The value of that name, or the count (JOB_STATES, ...) when there is none. */
enum job_event_type job_event_from_name(const char *name);
enum job_end job_end_from_name(const char *name);

/* True in the states in which an attempt holds resources. */
bool job_state_is_active(enum job_state state);
