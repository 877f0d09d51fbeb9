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

int64_t core_stop_grace_ms(const struct core *core, const struct core_job *entry)
{
    return entry->grace_ms < 0 ? core_grace_ms(core, entry->job->ask) : entry->grace_ms;
}

/* A stop may be followed by another one; what counts is the one that ends first. */
void core_note_stop(const struct core *core, struct core_job *entry)
{
    int64_t ends_ms = core->now_ms + core_stop_grace_ms(core, entry);
    bool is_known = entry->stop_token == entry->job->token && entry->stop_ends_ms <= ends_ms;
    if (entry->job->state != JOB_STOPPING || is_known)
        return;
    entry->stop_token = entry->job->token;
    entry->stop_ends_ms = ends_ms;
}

int64_t core_checkpoint_until(const struct core *core, uint64_t id)
{
    const struct core_job *entry = core_find(core, id);
    return entry != NULL && core_is_checkpointing(entry->job) ? entry->stop_ends_ms : 0;
}
