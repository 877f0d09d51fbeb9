/* SPDX-License-Identifier: MIT */
/*
 * Decides about automatic retries. A failed command is retried only if the job listed its exit code, because
 * a deterministic failure would only waste GPUs. A cancel is final.
 *
 * The delay doubles with each try and is randomised, so that many jobs that failed for the same reason do not
 * retry together.
 */
#include "job/job.h"

#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS   600000

static bool is_no_fault_of_its_own(const struct job_event *end)
{
    switch (end->end) {
    case END_START_FAILED:
    case END_UNKNOWN:
    case END_REBOOT:
    case END_NODE_LOST:
    case END_GPU_FAULT: return true;
    default: return false;
    }
}

static bool has_code(const struct job_event *end)
{
    switch (end->end) {
    case END_EXIT:
    case END_SIGNAL:
    case END_SETUP_FAILED:
    case END_GPU_OOM:
    case END_OOM: return true;
    default: return false;
    }
}

/* A job that takes turns with others is switched without limit, unless it specified one. */
static bool may_requeue_at_limit(const struct job *job)
{
    uint32_t max = job->ask->max_requeues;
    return max == 0 || job_run(job)->limit_requeues < max;
}

/* Losses are always limited: a job that crashes its nodes must not crash all of them. */
static bool may_requeue_after_loss(const struct job *job)
{
    uint32_t max = job->ask->max_requeues;
    return job_run(job)->loss_requeues < (max != 0 ? max : ASK_REQUEUES);
}

static bool is_loss(enum job_end end)
{
    return end == END_NODE_LOST || end == END_REBOOT;
}

static bool wants_retry(const struct job *job, const struct job_event *end)
{
    if (job->retries >= job->ask->retry)
        return false;
    return is_no_fault_of_its_own(end) || (has_code(end) && ask_retries_on(job->ask, end->exit_code));
}

static int64_t wait_ms(uint32_t retries, uint32_t jitter)
{
    int64_t most_ms = retries < 10 ? (int64_t)RETRY_FIRST_MS << retries : RETRY_MAX_MS;
    most_ms = most_ms < RETRY_MAX_MS ? most_ms : RETRY_MAX_MS;
    return most_ms / 2 + most_ms / 2 * jitter / RETRY_JITTER_MAX;
}

bool job_requeue_decide(const struct job *job, struct job_event *end, uint32_t jitter)
{
    if (job->ask->adopted_pid != 0 || job->stop_reason != END_NONE)
        return false;
    if (end->end == END_TIME_LIMIT && job->ask->requeue_on_timeout && may_requeue_at_limit(job)) {
        end->cause = REQUEUE_TIME_LIMIT;
        return true;
    }
    if (is_loss((enum job_end)end->end) && job->ask->requeue_on_node_lost && may_requeue_after_loss(job)) {
        end->cause = REQUEUE_NODE_LOST;
        return true;
    }
    if (!wants_retry(job, end))
        return false;
    end->cause = REQUEUE_FAILED;
    end->retry_ms = end->wall_ms + wait_ms(job->retries, jitter);
    return true;
}
