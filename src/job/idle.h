/* SPDX-License-Identifier: MIT */
/*
 * Running jobs that do not use their GPUs: first marked, then preemptible, then ended. Pure: the idle time
 * comes from the agent's meter, the settings of site and job are arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct job;

/* The stages; the numbers are stored on disk. */
enum idle_level {
    IDLE_NONE,   // uses its GPUs, or has been idle only briefly
    IDLE_WARNED, // "told" in the API: marked everywhere; its owner is notified
    IDLE_YIELDS, // also yields to jobs that are not preemptible
    IDLE_LEVELS,
};

/* Settings of the site; 0: never. */
struct idle_policy {
    int64_t warn_ms;
    int64_t yields_ms;
    int64_t end_ms;           // also the maximum of a job's own idle_timeout
    bool is_ok_for_operators; // only operators may set idle_ok
};

/* "told", "yields", or NULL for other values. */
const char *idle_level_name(uint32_t level);

/* The idle time after which this job is ended, by the site's setting or its own; 0: never. */
int64_t idle_end_ms(const struct idle_policy *policy, const struct job *job);

/*
 * The current level of a running job. `idle_ms`: how long its GPUs have been unused, 0: in use. `now_ms`: the
 * clock of its events. *ret_is_over: the job must be ended; that happens only after it was marked and had
 * some time to react.
 */
enum idle_level idle_judge(const struct idle_policy *policy, const struct job *job, int64_t idle_ms,
    int64_t now_ms, bool *ret_is_over);
