/* SPDX-License-Identifier: MIT */
/*
 * A rank is one double: tier * 2^46 ms + the rest, lower first. The tier contains what takes precedence,
 *
 *     tier = -priority * 4 + (preemptible ? 2 : 0) + (has waited longer than the age cap ? 0 : 1)
 *
 * and the rest, which is limited to [0, 2^46 - 64] so that even rounded it never reaches the next tier, is
 * what the policy orders by: a time or a product of time and GPUs, in milliseconds. 2^46 ms are 2,200 years,
 * or two years on 1,000 GPUs. A double has 53 bits: ranks are exact to the millisecond for priorities between
 * -31 and 31 and to 32 ms at 1,000; equal ones are ordered by submit time and id, as in the queue.
 *
 * fifo, sjf, qssf, easy*, conservative, srtf and las are the policies of the literature, for comparison, and
 * order jobs of equal priority exactly as published.
 */
#include "sched/queue/policy.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "sched/cluster/cluster.h"

enum { TIERS_PER_PRIORITY = 4 };

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static double in_tier(const struct policy_view *view, bool is_aged, double rest)
{
    bool is_first = is_aged || view->has_begun;
    double tier = -(double)view->priority * TIERS_PER_PRIORITY + (view->is_preemptible ? 2 : 0) + !is_first;
    double within = view->has_begun ? (double)view->submit_ms : rest;
    return tier * RANK_TIER_MS + clamp(within, 0, RANK_TIER_MS - 64);
}

static double rank_by_submit(const struct policy_view *view)
{
    return in_tier(view, false, (double)view->submit_ms);
}

static double rank_by_duration(const struct policy_view *view)
{
    return in_tier(view, false, (double)view->order_ms);
}

static double rank_by_service(const struct policy_view *view)
{
    return in_tier(view, false, (double)view->order_ms * view->gpus);
}

static bool is_aged(const struct policy_view *view)
{
    return view->age_cap_ms > 0 && view->now_ms - view->submit_ms >= view->age_cap_ms;
}

static int64_t when_aged(const struct policy_view *view)
{
    return view->age_cap_ms <= 0 || is_aged(view) ? TIME_NEVER : view->submit_ms + view->age_cap_ms;
}

/*
 * Jobs are ordered by the time until which they can be overtaken. Short jobs thus precede long ones, as under
 * shortest job first, but no job waits forever for a stream of them. Of 3, 10, 30 and 100 times the expected
 * duration, the average wait was within the noise of shortest job first from 30 on (docs/scheduling.md).
 *
 * The jobs of a user with twice the usage of others count as longer by 2^FAIRNESS, so that a user with a
 * flood of short jobs does not keep all others waiting. Those of a user who has no running job and has not
 * exceeded its share count as 2^HEAD_START times shorter until the first of them runs. The number of
 * requested GPUs does not count: no exponent of it between -1 and 1 was an improvement in every respect.
 *
 * Neither may move a job past the promise made at its submit.
 */
#define FAIRNESS   0.7
#define HEAD_START 2.0
#define FACTOR_MAX 6.0 // usage above 64 times the mean, or below a 64th, makes no further difference

/* The time after the submission within which later jobs may overtake it; RANK_TIER_MS: no bound. */
static double promised_ms(const struct policy_view *view)
{
    double by_limit = view->limit_ms > 0 ? POLICY_PATIENCE * (double)view->limit_ms : RANK_TIER_MS;
    double by_age = view->age_cap_ms > 0 ? (double)view->age_cap_ms : RANK_TIER_MS;
    return by_limit < by_age ? by_limit : by_age;
}

static int64_t promised_by_limit(const struct policy_view *view)
{
    double most_ms = promised_ms(view);
    return most_ms < RANK_TIER_MS ? view->submit_ms + (int64_t)most_ms : TIME_NEVER;
}

static int64_t overtaken_by_expectation(const struct policy_view *view)
{
    double factor = clamp(view->user_factor + view->group_factor, -FACTOR_MAX, FACTOR_MAX);
    double start = view->has_head_start ? HEAD_START : 0;
    double after_ms = POLICY_PATIENCE * (double)view->order_ms * exp2(FAIRNESS * factor - start);
    return view->submit_ms + (int64_t)clamp(after_ms, 0, promised_ms(view));
}

static double rank_by_expectation(const struct policy_view *view)
{
    return in_tier(view, false, (double)overtaken_by_expectation(view));
}

static int64_t overtaken_by_submit(const struct policy_view *view)
{
    return view->submit_ms;
}

/* The same without fair share: the order must agree with the order of preemption, to avoid thrashing, and no
 * short job waits long. */
static double rank_by_index(const struct policy_view *view)
{
    return in_tier(view, is_aged(view), is_aged(view) ? (double)view->submit_ms : (double)view->order_ms);
}

const struct policy policy_default = {
    .name = "default",
    .summary = "short expected jobs first, with fair share and an age cap; backfills around reservations",
    .backfill = BACKFILL_EASY,
    .uses_fairshare = true,
    .rank = rank_by_expectation,
    .overtaken_until = overtaken_by_expectation,
    .promised_until = promised_by_limit,
};

static const struct policy learnt = {
    .name = "learnt",
    .summary = "shortest expected remaining time first; preempts for much shorter jobs",
    .backfill = BACKFILL_SKIP,
    .preempting = PREEMPT_LEARNT,
    .rank = rank_by_index,
    .rank_changes = when_aged,
};

static const struct policy fifo = {
    .name = "fifo",
    .summary = "first come, first served; a blocked job blocks all behind it",
    .backfill = BACKFILL_NONE,
    .rank = rank_by_submit,
    .overtaken_until = overtaken_by_submit,
    .promised_until = overtaken_by_submit,
};

static const struct policy fifo_skip = {
    .name = "fifo-skip",
    .summary = "first come, first served among jobs that fit; wide jobs may starve",
    .backfill = BACKFILL_SKIP,
    .rank = rank_by_submit,
};

static const struct policy sjf = {
    .name = "sjf",
    .summary = "shortest first by real durations, strict (oracle)",
    .backfill = BACKFILL_NONE,
    .is_oracle = true,
    .rank = rank_by_duration,
};

static const struct policy qssf = {
    .name = "qssf",
    .summary = "least expected GPU time first, strict",
    .backfill = BACKFILL_NONE,
    .rank = rank_by_service,
};

static const struct policy easy = {
    .name = "easy",
    .summary = "first come, first served; backfills jobs that do not delay the first (EASY)",
    .backfill = BACKFILL_EASY,
    .rank = rank_by_submit,
    .overtaken_until = overtaken_by_submit,
    .promised_until = overtaken_by_submit,
};

static const struct policy easy_sjf = {
    .name = "easy-sjf",
    .summary = "shortest first by real durations; backfills jobs that do not delay the first (oracle)",
    .backfill = BACKFILL_EASY,
    .is_oracle = true,
    .rank = rank_by_duration,
};

static const struct policy easy_qssf = {
    .name = "easy-qssf",
    .summary = "least expected GPU time first; backfills jobs that do not delay the first",
    .backfill = BACKFILL_EASY,
    .rank = rank_by_service,
};

static const struct policy conservative = {
    .name = "conservative",
    .summary = "first come, first served; backfills jobs that delay no other (conservative)",
    .backfill = BACKFILL_CONSERVATIVE,
    .rank = rank_by_submit,
    .overtaken_until = overtaken_by_submit,
    .promised_until = overtaken_by_submit,
};

static const struct policy srtf = {
    .name = "srtf",
    .summary = "shortest remaining time first, preempts (oracle)",
    .backfill = BACKFILL_SKIP,
    .preempting = PREEMPT_SRTF,
    .is_oracle = true,
    .rank = rank_by_duration,
};

static const struct policy las = {
    .name = "las",
    .summary = "least attained service first in two levels, preempts",
    .backfill = BACKFILL_SKIP,
    .preempting = PREEMPT_LAS,
    .rank = rank_by_submit,
};

const struct policy *const policies[] = { &policy_default, &learnt, &fifo, &fifo_skip, &sjf, &qssf, &easy,
    &easy_sjf, &easy_qssf, &conservative, &srtf, &las, NULL };

const struct policy *policy_find(const char *name)
{
    for (size_t i = 0; policies[i] != NULL; i++)
        if (strcmp(policies[i]->name, name) == 0)
            return policies[i];
    return NULL;
}
