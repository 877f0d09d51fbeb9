/* SPDX-License-Identifier: MIT */
/*
 *                submitted            allocated              started
 *    (new) ──────────────> queued ─────────────> starting ─────────> running
 *                           │  ^ ^                │ │  │ stop,        │   │
 *                      stop │  │ └─── returned ───┘ │  │ preempted    │   │
 *                           │  │              ended │  v              │   │ ended
 *                           │  └── requeued, ───────┼─ stopping <─────┘   │
 *                           │      returned         │  │    stop,         │
 *                           v      (preempted)      v  │    preempted     │
 *                          done <───────────────────┴──┘ returned, ended  │
 *                            ^────────────────────────────────────────────┘
 *
 * A running job whose shepherd died before the gate opened returns to queued in the same way as a starting
 * one. The state after `stopping` depends on the request: a stop leads to done, a preemption to queued, and a
 * stop after a preemption to done; a stop after a stop only changes its terms. A stop that concerns the
 * attempt, such as that at the time limit, is void if the attempt never ran. A queued job can be edited, held
 * and released, and one that goes back to the queue held and released; of a running job the time limit can be
 * edited, it can be suspended, continued and signalled, and it is marked when it leaves its GPUs unused
 * (idle). It can also be parked: job/park.h draws the states of that within `running`.
 *
 * An attempt that ends by itself can be followed by another one (requeued from starting and running): the job
 * reached its time limit or failed, and requested a requeue.
 *
 * An array is only ever queued or done. `split` takes one index out of it for a separate job, `member`
 * reports that such a job is done; the array is done with the last of them. A stop cancels its remaining
 * indexes; it then waits for the elements that are still active.
 *
 * Resources are held exactly in starting, running and stopping; a parked job has no GPUs, and neither has an
 * element that is committed behind another before it inherits theirs (job/behind.h). A job leaves these
 * states only by proof: `returned` (the attempt's verdict is "nogo"), or `ended` and `requeued` (exit record
 * and no process left, a new boot of its node, an administrator's confirmation that the node is off, or an
 * expired lease).
 */
#include "job/state.h"

#include <stddef.h>
#include <string.h>

/* In which case a row counts: see job_transition(). */
enum when { ALWAYS, OVER, GOES_ON };

static const struct {
    enum job_state state;
    enum job_event_type event;
    enum when when;
    enum job_state next;
    const char *meaning;
} transitions[] = {
    { JOB_NEW, EVENT_SUBMITTED, ALWAYS, JOB_QUEUED, "accepted and stored" },
    { JOB_QUEUED, EVENT_ALLOCATED, ALWAYS, JOB_STARTING, "resources allocated for the next attempt" },
    { JOB_QUEUED, EVENT_STOP, OVER, JOB_DONE, "cancelled before its first start" },
    { JOB_QUEUED, EVENT_STOP, GOES_ON, JOB_QUEUED,
        "the rest of an array is cancelled; some elements are open" },
    { JOB_QUEUED, EVENT_ENDED, OVER, JOB_DONE, "failed: it cannot be started" },
    { JOB_QUEUED, EVENT_EDITED, ALWAYS, JOB_QUEUED, "its request was edited" },
    { JOB_QUEUED, EVENT_HELD, ALWAYS, JOB_QUEUED, "held" },
    { JOB_QUEUED, EVENT_RELEASED, ALWAYS, JOB_QUEUED, "a hold was removed" },
    { JOB_QUEUED, EVENT_SPLIT, ALWAYS, JOB_QUEUED, "an element of this array became a job" },
    { JOB_QUEUED, EVENT_MEMBER, GOES_ON, JOB_QUEUED, "an element of this array is done" },
    { JOB_QUEUED, EVENT_MEMBER, OVER, JOB_DONE, "the last element of this array is done" },
    { JOB_STARTING, EVENT_STARTED, ALWAYS, JOB_RUNNING, "the command was executed" },
    { JOB_STARTING, EVENT_STOP, ALWAYS, JOB_STOPPING, "cancelled while starting" },
    { JOB_STARTING, EVENT_PREEMPTED, ALWAYS, JOB_STOPPING, "preempted while starting" },
    { JOB_STARTING, EVENT_RETURNED, ALWAYS, JOB_QUEUED, "this attempt never ran; the next one may" },
    { JOB_STARTING, EVENT_ENDED, ALWAYS, JOB_DONE, "ended before `started` was received" },
    { JOB_STARTING, EVENT_REQUEUED, ALWAYS, JOB_QUEUED, "ended before that, and requeued" },
    { JOB_STARTING, EVENT_RESTORING, ALWAYS, JOB_STARTING,
        "its GPUs are free; it was to start without them" },
    { JOB_STARTING, EVENT_INHERITS, ALWAYS, JOB_STARTING, "the preceding element has released its GPUs" },
    { JOB_STARTING, EVENT_STEP_STARTED, ALWAYS, JOB_STARTING, "a step begins before `started` arrives" },
    { JOB_STARTING, EVENT_STEP_ENDED, ALWAYS, JOB_STARTING, "a step ends before `started` arrives" },
    { JOB_RUNNING, EVENT_STOP, ALWAYS, JOB_STOPPING, "cancelled while running" },
    { JOB_RUNNING, EVENT_PREEMPTED, ALWAYS, JOB_STOPPING, "preempted" },
    { JOB_RUNNING, EVENT_IDLE, ALWAYS, JOB_RUNNING, "its idle level changed" },
    { JOB_RUNNING, EVENT_EDITED, ALWAYS, JOB_RUNNING, "its time limit was changed" },
    { JOB_RUNNING, EVENT_SUSPENDED, ALWAYS, JOB_RUNNING, "suspended; it keeps its resources" },
    { JOB_RUNNING, EVENT_CONTINUED, ALWAYS, JOB_RUNNING, "continued" },
    { JOB_RUNNING, EVENT_SIGNALLED, ALWAYS, JOB_RUNNING, "a user sent it a signal" },
    { JOB_RUNNING, EVENT_STEP_STARTED, ALWAYS, JOB_RUNNING, "a step begins" },
    { JOB_RUNNING, EVENT_STEP_ENDED, ALWAYS, JOB_RUNNING, "a step ends" },
    { JOB_RUNNING, EVENT_PARK, ALWAYS, JOB_RUNNING, "its GPU memory is being saved, or it stays parked" },
    { JOB_RUNNING, EVENT_PARKED, ALWAYS, JOB_RUNNING, "saved: its GPUs are free" },
    { JOB_RUNNING, EVENT_UNPARK, ALWAYS, JOB_RUNNING, "it waits for its GPUs to return" },
    { JOB_RUNNING, EVENT_RESTORING, ALWAYS, JOB_RUNNING, "its GPUs are allocated again" },
    { JOB_RUNNING, EVENT_UNPARKED, ALWAYS, JOB_RUNNING, "it runs on its GPUs" },
    { JOB_RUNNING, EVENT_RECONCILED, ALWAYS, JOB_RUNNING, "its node had later orders than the store" },
    { JOB_RUNNING, EVENT_INHERITS, ALWAYS, JOB_RUNNING, "the preceding element has released its GPUs" },
    { JOB_RUNNING, EVENT_RETURNED, ALWAYS, JOB_QUEUED, "its shepherd died before the gate opened" },
    { JOB_RUNNING, EVENT_ENDED, ALWAYS, JOB_DONE, "over" },
    { JOB_RUNNING, EVENT_REQUEUED, ALWAYS, JOB_QUEUED, "ended, and requeued" },
    { JOB_STOPPING, EVENT_STARTED, ALWAYS, JOB_STOPPING, "it had started before the stop arrived" },
    { JOB_STOPPING, EVENT_STOP, GOES_ON, JOB_STOPPING, "cancelled while being preempted" },
    { JOB_STOPPING, EVENT_STOP, OVER, JOB_STOPPING, "cancelled again, with other options" },
    { JOB_STOPPING, EVENT_HELD, GOES_ON, JOB_STOPPING, "held from its return to the queue on" },
    { JOB_STOPPING, EVENT_RELEASED, GOES_ON, JOB_STOPPING, "that hold was removed" },
    { JOB_STOPPING, EVENT_INHERITS, ALWAYS, JOB_STOPPING, "the preceding element has released its GPUs" },
    { JOB_STOPPING, EVENT_STEP_ENDED, ALWAYS, JOB_STOPPING, "a step ends while its job stops" },
    { JOB_STOPPING, EVENT_RETURNED, OVER, JOB_DONE, "stopped before it ran" },
    { JOB_STOPPING, EVENT_RETURNED, GOES_ON, JOB_QUEUED, "preempted, or its attempt stopped, before it ran" },
    { JOB_STOPPING, EVENT_REQUEUED, GOES_ON, JOB_QUEUED, "preempted, and queued again" },
    { JOB_STOPPING, EVENT_ENDED, ALWAYS, JOB_DONE, "over" },
};

static const char *const state_names[JOB_STATES] = {
    [JOB_NEW] = "new",
    [JOB_QUEUED] = "queued",
    [JOB_STARTING] = "starting",
    [JOB_RUNNING] = "running",
    [JOB_STOPPING] = "stopping",
    [JOB_DONE] = "done",
};

static const char *const event_names[EVENT_TYPES] = {
    [EVENT_SUBMITTED] = "submitted",
    [EVENT_ALLOCATED] = "allocated",
    [EVENT_STARTED] = "started",
    [EVENT_STOP] = "stop",
    [EVENT_RETURNED] = "returned",
    [EVENT_ENDED] = "ended",
    [EVENT_EDITED] = "edited",
    [EVENT_HELD] = "held",
    [EVENT_RELEASED] = "released",
    [EVENT_PREEMPTED] = "preempted",
    [EVENT_REQUEUED] = "requeued",
    [EVENT_SPLIT] = "split",
    [EVENT_MEMBER] = "member",
    [EVENT_CLUSTER] = "cluster",
    [EVENT_IDLE] = "idle",
    [EVENT_SUSPENDED] = "suspended",
    [EVENT_CONTINUED] = "continued",
    [EVENT_SIGNALLED] = "signalled",
    [EVENT_STEP_STARTED] = "step_started",
    [EVENT_STEP_ENDED] = "step_ended",
    [EVENT_PARK] = "park",
    [EVENT_PARKED] = "parked",
    [EVENT_UNPARK] = "unpark",
    [EVENT_RESTORING] = "restoring",
    [EVENT_UNPARKED] = "unparked",
    [EVENT_RECONCILED] = "reconciled",
    [EVENT_INHERITS] = "inherits",
};

static const char *const cause_names[REQUEUE_CAUSES] = {
    [REQUEUE_PREEMPTED] = "preempted",
    [REQUEUE_ASKED] = "asked",
    [REQUEUE_TIME_LIMIT] = "time_limit",
    [REQUEUE_FAILED] = "failed",
    [REQUEUE_NODE_LOST] = "node_lost",
    [REQUEUE_GPU_OOM] = "gpu_oom",
};

static const char *const end_names[END_KINDS] = {
    [END_NONE] = "none",
    [END_EXIT] = "exit",
    [END_SIGNAL] = "signal",
    [END_CANCELLED] = "cancelled",
    [END_START_FAILED] = "start_failed",
    [END_SETUP_FAILED] = "setup_failed",
    [END_UNKNOWN] = "unknown",
    [END_REBOOT] = "reboot",
    [END_TIME_LIMIT] = "time_limit",
    [END_DEADLINE] = "deadline",
    [END_DEPENDENCY] = "dependency",
    [END_OOM] = "oom",
    [END_GPU_FAULT] = "gpu_fault",
    [END_IDLE_TIMEOUT] = "idle_timeout",
    [END_RELEASED] = "released",
    [END_NODE_LOST] = "node_lost",
    [END_GPU_OOM] = "gpu_oom",
    [END_GPU_MEM] = "gpu_mem",
    [END_BUDGET] = "budget",
};

bool job_transition(enum job_state state, enum job_event_type type, bool goes_on, enum job_state *ret_next)
{
    enum when now = goes_on ? GOES_ON : OVER;
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
        if (transitions[i].state == state && transitions[i].event == type &&
            (transitions[i].when == ALWAYS || transitions[i].when == now)) {
            *ret_next = transitions[i].next;
            return true;
        }
    }
    return false;
}

static const char *name_of(const char *const *names, size_t count, size_t value)
{
    return value < count ? names[value] : "invalid";
}

static size_t value_of(const char *const *names, size_t count, const char *name)
{
    size_t value = 0;
    while (value < count && strcmp(names[value], name) != 0)
        value++;
    return value;
}

const char *job_state_name(enum job_state state)
{
    return name_of(state_names, JOB_STATES, state);
}

const char *job_event_name(enum job_event_type type)
{
    return name_of(event_names, EVENT_TYPES, type);
}

const char *job_end_name(enum job_end end)
{
    return name_of(end_names, END_KINDS, end);
}

const char *requeue_cause_name(enum requeue_cause cause)
{
    return name_of(cause_names, REQUEUE_CAUSES, cause);
}

enum job_event_type job_event_from_name(const char *name)
{
    return (enum job_event_type)value_of(event_names, EVENT_TYPES, name);
}

enum job_end job_end_from_name(const char *name)
{
    return (enum job_end)value_of(end_names, END_KINDS, name);
}

bool job_state_is_active(enum job_state state)
{
    return state == JOB_STARTING || state == JOB_RUNNING || state == JOB_STOPPING;
}
