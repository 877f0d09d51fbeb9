/* SPDX-License-Identifier: MIT */
/* The states of a job, its end reasons, and the transition table. */
#pragma once

#include <stdbool.h>

enum job_state {
    JOB_NEW,      // not submitted yet; never stored
    JOB_QUEUED,   // waits for resources
    JOB_STARTING, // an attempt is committed; the controller has not received its verdict yet
    JOB_RUNNING,  // the command was executed
    JOB_STOPPING, // the end of the attempt was requested and is not confirmed yet
    JOB_DONE,     // final
    JOB_STATES,
};

enum job_event_type {
    EVENT_SUBMITTED,    // by its owner, or split off an array
    EVENT_ALLOCATED,    // resources allocated: the next attempt begins
    EVENT_STARTED,      // the shepherd opened the gate
    EVENT_STOP,         // cancelled by a user
    EVENT_RETURNED,     // proof that the attempt never executed its command
    EVENT_ENDED,        // proof that the attempt has ended
    EVENT_EDITED,       // its request was changed
    EVENT_HELD,         // held: it may not start
    EVENT_RELEASED,     // a hold was removed
    EVENT_PREEMPTED,    // its attempt is being ended and the job will be requeued
    EVENT_REQUEUED,     // proof that the attempt has ended; the job waits again
    EVENT_SPLIT,        // an element was split off this array
    EVENT_MEMBER,       // an element of this array is done
    EVENT_CLUSTER,      // of job 0: the cluster changed
    EVENT_IDLE,         // its GPUs have been unused for long, or are used again
    EVENT_SUSPENDED,    // all its processes are stopped; it keeps its resources
    EVENT_CONTINUED,    // continued after EVENT_SUSPENDED
    EVENT_SIGNALLED,    // a user sent it a signal
    EVENT_STEP_STARTED, // a step of it begins
    EVENT_STEP_ENDED,   // and has ended
    EVENT_PARK,         // its node is ordered to save its GPU memory; or a parked job must stay parked
    EVENT_PARKED,       // its GPU memory is saved, and its GPUs are free
    EVENT_UNPARK,       // it must return, and waits for its GPUs
    EVENT_RESTORING,    // they are booked for it again, and its node is ordered to restore it
    EVENT_UNPARKED,     // it runs on its GPUs
    EVENT_RECONCILED,   // its node has had later orders than this store, an older copy, contains
    EVENT_INHERITS,     // an element that was committed behind another has its GPUs now
    EVENT_TYPES,
};

/* Why a job is done; the API's `ended_by`. */
enum job_end {
    END_NONE,
    END_EXIT,   // the command exited; `exit_code` holds its status
    END_SIGNAL, // a signal that mgpu did not send ended the command
    END_CANCELLED,
    END_START_FAILED, // the command could not be executed; `exit_code` is 125, 126 or 127
    END_SETUP_FAILED, // the setup command failed
    END_UNKNOWN,      // it ran, but its status was lost with its shepherd and its init
    END_REBOOT,       // its node was rebooted
    END_TIME_LIMIT,   // time limit reached; `exit_code` is 124
    END_DEADLINE,     // it could not start before its deadline
    END_DEPENDENCY,   // its dependency can never be satisfied
    END_OOM,          // killed by the kernel's OOM killer; `exit_code` is 137
    END_GPU_FAULT,    // the command failed after a driver error on one of its GPUs
    END_IDLE_TIMEOUT, // its GPUs were unused for too long; `exit_code` is 124
    END_RELEASED,     // an adopted process has ended; only its parent knows the status
    END_NODE_LOST,    // its node was fenced, or unreachable for longer than the job's lease
    END_GPU_OOM,      // the command failed because it ran out of GPU memory
    END_GPU_MEM,      // it stayed above its share of GPU memory; `exit_code` is 137
    END_BUDGET,       // the GPU time of the token it was submitted with is used up; `exit_code` is 124
    END_KINDS,
};

/* Why a job was requeued. */
enum requeue_cause {
    REQUEUE_PREEMPTED,  // preempted: it keeps its place
    REQUEUE_ASKED,      // requested by a user
    REQUEUE_TIME_LIMIT, // time limit reached, with requeue_on_timeout
    REQUEUE_FAILED,     // failed, with retries left
    REQUEUE_NODE_LOST,  // node lost, with requeue_on_node_lost
    REQUEUE_GPU_OOM,    // ran out of GPU memory: retried with more
    REQUEUE_CAUSES,
};

/*
 * Returns true and the next state if `type` may happen in `state`. `goes_on`: the job does not end with this
 * event, because it is requeued or elements of the array are left or active.
 */
bool job_transition(enum job_state state, enum job_event_type type, bool goes_on, enum job_state *ret_next);

const char *job_state_name(enum job_state state);
const char *job_event_name(enum job_event_type type);
const char *job_end_name(enum job_end end);
const char *requeue_cause_name(enum requeue_cause cause);

/* The value with that name, or the count (JOB_STATES, ...) if there is none. */
enum job_event_type job_event_from_name(const char *name);
enum job_end job_end_from_name(const char *name);

/* True in the states in which an attempt holds resources. */
bool job_state_is_active(enum job_state state);
