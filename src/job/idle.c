/* SPDX-License-Identifier: MIT */
/*
 * A job is notified a quarter of the time before it is ended, at most NOTIFICATION_MAX_MS; if that was
 * impossible (mgpud was not running), it still gets that much time. Idempotent: the level is a function of
 * the current state.
 */
#include "job/idle.h"

#include <stddef.h>

#include "job/job.h"

#define NOTIFICATION_PART   4
#define NOTIFICATION_MAX_MS INT64_C(600000)

const char *idle_level_name(uint32_t level)
{
    static const char *const names[IDLE_LEVELS] = { [IDLE_WARNED] = "told", [IDLE_YIELDS] = "yields" };
    return level < IDLE_LEVELS ? names[level] : NULL;
}

static int64_t sooner(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return a == 0 ? b : a;
    return a < b ? a : b;
}

/* A meter covers the GPUs of one node: for a job on several nodes it is unknown whether all are idle. */
static bool is_known(const struct job *job)
{
    const struct gpu_grant *grants = job->grants.items;
    for (size_t i = 0; i < job->grants.count; i++)
        if (grants[i].node != NULL)
            return false;
    return job->grants.count > 0;
}

int64_t idle_end_ms(const struct idle_policy *policy, const struct job *job)
{
    return job->ask->idle_ok ? 0 : sooner(policy->end_ms, job->ask->idle_timeout_ms);
}

static int64_t notification_of(int64_t end_ms)
{
    int64_t part_ms = end_ms / NOTIFICATION_PART;
    return part_ms < NOTIFICATION_MAX_MS ? part_ms : NOTIFICATION_MAX_MS;
}

enum idle_level idle_judge(const struct idle_policy *policy, const struct job *job, int64_t idle_ms,
    int64_t now_ms, bool *ret_is_over)
{
    int64_t end_ms = idle_end_ms(policy, job), notice_ms = notification_of(end_ms);
    int64_t warn_ms = sooner(policy->warn_ms, end_ms == 0 ? 0 : end_ms - notice_ms);
    warn_ms = sooner(warn_ms, policy->yields_ms);
    *ret_is_over = false;
    if (job->state != JOB_RUNNING || job->ask->idle_ok || !is_known(job) || warn_ms == 0 || idle_ms < warn_ms)
        return IDLE_NONE;
    *ret_is_over = end_ms != 0 && idle_ms >= end_ms && job->idle_level != IDLE_NONE &&
                   now_ms - job_run(job)->idle_warned_ms >= notice_ms;
    return policy->yields_ms != 0 && idle_ms >= policy->yields_ms ? IDLE_YIELDS : IDLE_WARNED;
}
