/* SPDX-License-Identifier: MIT */
/* Queueing policies: which job comes first. One row each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The input of a policy: a class's head. Real durations are never included, unless is_oracle. */
struct policy_view {
    int64_t submit_ms; // of the head
    int64_t now_ms;
    int32_t priority;
    double gpus;                      // 0.25 for a share; the same for a CPU job
    int64_t order_ms;                 // estimate used for ordering
    double user_factor, group_factor; // fairshare_factor(), in steps
    bool has_head_start;              // its user has nothing running, and no more than its share
    bool is_preemptible;
    bool has_begun;     // it runs, and waits only for its GPUs: its other resources are idle meanwhile
    int64_t limit_ms;   // its time limit, 0: none
    int64_t age_cap_ms; // setting: a job submitted this much later never precedes it; 0: none
};

enum backfill {
    BACKFILL_NONE,         // strict: a job that cannot start blocks all behind it
    BACKFILL_SKIP,         // anything that fits starts; wide jobs may starve
    BACKFILL_EASY,         // the first blocked jobs have reservations, which others must not delay
    BACKFILL_CONSERVATIVE, // every blocked job has a reservation
};

enum preempting {
    PREEMPT_NONE,   // only preemptible jobs are preempted
    PREEMPT_SRTF,   // by remaining time
    PREEMPT_LAS,    // by attained service, in levels
    PREEMPT_LEARNT, // by learnt expected remaining time
};

/*
 * A job may only be overtaken by jobs submitted within this many times its expected duration after it; for
 * one of a user above its share that counts as longer, but at most within this many times its time limit.
 */
#define POLICY_PATIENCE 30

/* Ranks are in milliseconds; rows of different priorities differ by multiples of this. */
#define RANK_TIER_MS 0x1p46
/* Above all ranks of policies: requeued jobs at the end of the queue, in that order; above those, preemptible
 * jobs. */
#define RANK_TURN_OVER             0x1p60
#define RANK_TURN_OVER_PREEMPTIBLE 0x1p61

struct policy {
    const char *name;
    const char *summary; // for help and output
    enum backfill backfill;
    enum preempting preempting;
    bool is_oracle; // needs real durations: only in the simulator, whose output says so
    bool uses_fairshare;
    /* Lower ranks first. Priority takes precedence, then whether the job is preemptible. */
    double (*rank)(const struct policy_view *view);
    /* When the rank changes with time; TIME_NEVER: not any more; NULL: never. */
    int64_t (*rank_changes)(const struct policy_view *view);
    /* Jobs of its tier submitted after this time cannot precede it, as expected now. NULL: no such time. */
    int64_t (*overtaken_until)(const struct policy_view *view);
    /* The promise: the maximum of overtaken_until, whatever is learnt and however usage develops. It depends
     * only on the request and the settings. TIME_NEVER: no bound; NULL together with overtaken_until. */
    int64_t (*promised_until)(const struct policy_view *view);
};

extern const struct policy *const policies[]; // terminated by NULL
const struct policy *policy_find(const char *name);
extern const struct policy policy_default;
