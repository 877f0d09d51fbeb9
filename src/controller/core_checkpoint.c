/* SPDX-License-Identifier: MIT */
/*
 * Stops of jobs that go on later and have promised to save their work first. Their shepherd waits for the
 * word of the job, at most for the grace; here it is known which they are, and until when.
 */
#include "controller/core_private.h"

bool core_is_checkpointing(const struct job *job)
{
    return job->state == JOB_STOPPING && job->is_requeued && job->ask->checkpoint;
}

int64_t core_stop_grace_ms(const struct core *core, const struct job *job)
{
    const struct job_run *run = job_run(job);
    return (run->stop_terms & STOP_TERMS_GRACE) != 0 ? run->stop_grace_ms : core_grace_ms(core, job->ask);
}

/* A stop may be followed by another one; what counts is the one that ends first. */
void core_note_stop(const struct core *core, struct core_job *entry)
{
    int64_t ends_ms = core->now_ms + core_stop_grace_ms(core, entry->job);
    const struct core_extra *extra = core_extra(entry);
    bool is_known = extra->stop_token == entry->job->token && extra->stop_ends_ms <= ends_ms;
    if (entry->job->state != JOB_STOPPING || is_known)
        return;
    core_make_extra(entry)->stop_token = entry->job->token;
    core_make_extra(entry)->stop_ends_ms = ends_ms;
}

int64_t core_checkpoint_until(const struct core *core, uint64_t id)
{
    const struct core_job *entry = core_find(core, id);
    return entry != NULL && core_is_checkpointing(entry->job) ? core_extra(entry)->stop_ends_ms : 0;
}
