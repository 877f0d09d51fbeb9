/* SPDX-License-Identifier: MIT */
/*
 *              submitted            allocated              started
 *    (new) ──────────────> queued ─────────────> starting ─────────> running
 *                            │  ^                │  │  │               │  │
 *                       stop │  └── returned ────┘  │  │ stop     stop │  │ ended
 *                            │                ended │  v               v  │
 *                            │                      │  stopping <──────┘  │
 *                            v                      v     │ returned,     │
 *                           done <──────────────────┴─────┘ ended         │
 *                             ^───────────────────────────────────────────┘
 *
 * A running job whose shepherd died before the gate opened goes back to queued in the same way.
 *
 * Resources are held exactly in starting, running and stopping. A job leaves them only by proof: `returned`
 * (the attempt's verdict is "nogo") or `ended` (exit record and nothing left running, or a new boot of its
 * node).
 */
#include "job/state.h"

#include <stddef.h>
#include <string.h>

static const struct {
    enum job_state state;
    enum job_event_type event;
    enum job_state next;
    const char *meaning;
} transitions[] = {
    { JOB_NEW, EVENT_SUBMITTED, JOB_QUEUED, "accepted and durable" },
    { JOB_QUEUED, EVENT_ALLOCATED, JOB_STARTING, "resources booked for the next attempt" },
    { JOB_QUEUED, EVENT_STOP, JOB_DONE, "cancelled before it ever started" },
    { JOB_QUEUED, EVENT_ENDED, JOB_DONE, "given up: it cannot be started" },
    { JOB_STARTING, EVENT_STARTED, JOB_RUNNING, "the gate is open" },
    { JOB_STARTING, EVENT_STOP, JOB_STOPPING, "cancelled while it starts" },
    { JOB_STARTING, EVENT_RETURNED, JOB_QUEUED, "this attempt never ran; the next one may" },
    { JOB_STARTING, EVENT_ENDED, JOB_DONE, "over before `started` was heard" },
    { JOB_RUNNING, EVENT_STOP, JOB_STOPPING, "cancelled while it runs" },
    { JOB_RUNNING, EVENT_RETURNED, JOB_QUEUED, "its shepherd died before the gate opened" },
    { JOB_RUNNING, EVENT_ENDED, JOB_DONE, "over" },
    { JOB_STOPPING, EVENT_STARTED, JOB_STOPPING, "it had started before the stop arrived" },
    { JOB_STOPPING, EVENT_RETURNED, JOB_DONE, "stopped before it ran" },
    { JOB_STOPPING, EVENT_ENDED, JOB_DONE, "over" },
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
};

bool job_transition(enum job_state state, enum job_event_type type, enum job_state *ret_next)
{
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
        if (transitions[i].state == state && transitions[i].event == type) {
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

enum job_state job_state_from_name(const char *name)
{
    return (enum job_state)value_of(state_names, JOB_STATES, name);
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
