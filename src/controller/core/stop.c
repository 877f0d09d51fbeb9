/* SPDX-License-Identifier: MIT */
/* Stops: who requested one, and its grace period. */
#include "controller/core/stop.h"

#include "controller/core/change.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"

int64_t core_grace_ms(const struct core *core, const struct job_ask *ask)
{
    return ask->grace_ms > 0 ? ask->grace_ms : core->options.grace_ms;
}

bool core_is_checkpointing(const struct job *job)
{
    return job->state == JOB_STOPPING && job->is_requeued && job->ask->checkpoint;
}

int64_t core_stop_grace_ms(const struct core *core, const struct job *job)
{
    const struct job_run *run = job_run(job);
    if (job_is_stopped(job))
        return 0;
    return (run->stop_terms & STOP_TERMS_GRACE) != 0 ? run->stop_grace_ms : core_grace_ms(core, job->ask);
}

void core_stop_job(struct core *core, struct core_entry *entry, uint32_t uid, enum job_end reason)
{
    struct job_event event = {
        .type = EVENT_STOP, .attempt = entry->job->attempt, .uid = uid, .reason = reason
    };
    core_change(core, entry, &event, NULL);
}
