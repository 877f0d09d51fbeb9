/* SPDX-License-Identifier: MIT */
/*
 * What follows when a running job does not use its GPUs: it is marked, gives way to others, is ended. Pure:
 * how long it has been idle comes from its agent's meter, what the site and the job want comes as arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct job;

/* How far it has got; the numbers are on disk. */
enum idle_level {
    IDLE_NONE,   // it uses its GPUs, or has not been idle for long
    IDLE_TOLD,   // marked everywhere, and its owner is told
    IDLE_YIELDS, // and gives way to jobs that are not preemptible
    IDLE_LEVELS,
};

/* What the site wants; 0: never. */
struct idle_policy {
    int64_t told_ms;
    int64_t yields_ms;
    int64_t end_ms;           // also the longest that a job's own idle_timeout may be
    bool is_ok_for_operators; // only they may ask for idle_ok
};

/* "told", "yields", or NULL: none of them. */
const char *idle_level_name(uint32_t level);

/* After how long this job is ended, by the site or by its own wish; 0: never. */
int64_t idle_end_ms(const struct idle_policy *policy, const struct job *job);

/*
 * The level at which a running job is now. `idle_ms`: how long it has used nothing, 0: it does. `now_ms`: the
 * clock of its events. *ret_is_over: it is to be ended; never before it was told, and time was left after
 * that.
 */
enum idle_level idle_judge(const struct idle_policy *policy, const struct job *job, int64_t idle_ms,
    int64_t now_ms, bool *ret_is_over);
