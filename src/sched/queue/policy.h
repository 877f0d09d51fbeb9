/* SPDX-License-Identifier: MIT */
/* Who comes before whom: queueing policies, one row each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a policy may know of a class's head. Never a real duration, unless is_oracle. */
struct policy_view {
    int64_t submit_ms; // of the head
    int64_t now_ms;
    int32_t priority;
    double gpus;                      // 0.25 for a share; CPU jobs count as little
    int64_t order_ms;                 // estimate for ordering
    double user_factor, group_factor; // fairshare_factor(), stepped
    bool is_preemptible;
    int64_t age_cap_ms; // setting: who is submitted that much later never comes before it; 0: none
};

enum backfill {
    BACKFILL_NONE,         // strict: who cannot start stops everybody behind
    BACKFILL_SKIP,         // anything that fits starts; wide jobs may starve
    BACKFILL_EASY,         // the first blocked jobs have reservations, others must not delay them
    BACKFILL_CONSERVATIVE, // every blocked job has one
};

enum preempting {
    PREEMPT_NONE,   // only preemptible jobs give way
    PREEMPT_SRTF,   // by remaining time
    PREEMPT_LAS,    // by attained service, in levels
    PREEMPT_LEARNT, // by expected remaining time, learnt
};

/* Ranks are in milliseconds; rows of another priority are a multiple of this away. */
#define RANK_TIER_MS 0x1p46
/* Behind every rank of a policy: jobs whose turn is over, in the order in which it ended; behind those the
 * preemptible ones. */
#define RANK_TURN_OVER             0x1p60
#define RANK_TURN_OVER_PREEMPTIBLE 0x1p61

struct policy {
    const char *name;
    const char *summary; // for help and output
    enum backfill backfill;
    enum preempting preempting;
    bool is_oracle; // wants exact durations: only in the simulator, and its output says so
    bool uses_fairshare;
    /* Lower first. Priority is above all else, then whether it is preemptible. */
    double (*rank)(const struct policy_view *view);
    /* When the rank changes by itself, TIME_NEVER: not any more; NULL: never. */
    int64_t (*rank_changes)(const struct policy_view *view);
    /* Jobs of its tier that are submitted after that never stand before it. NULL: there is no such time. */
    int64_t (*overtaken_until)(const struct policy_view *view);
};

extern const struct policy *const policies[]; // NULL at the end
const struct policy *policy_find(const char *name);
extern const struct policy policy_default;
