/* SPDX-License-Identifier: MIT */
/* A start: the store's rows become the memory that the previous run had. Nothing is decided here. */
#include <stdlib.h>

#include "controller/core_private.h"

void core_load_summary(struct core *core, const struct store_summary *summary)
{
    core->epoch = summary->epoch;
    core->last_job = summary->last_job;
    core->last_event = summary->last_event;
    core->last_durable_event = summary->last_event;
}

void core_load_job(struct core *core, struct job *job)
{
    struct core_job *entry = job_table_add(&core->jobs, job);
    if (job->state == JOB_DONE) {
        core_note_done(core, entry);
        return;
    }
    core->n_undone++;
    if (job->state == JOB_QUEUED)
        core_enqueue(core, entry);
    else
        core_book(core, entry);
}

void core_load_key(struct core *core, uint64_t key_hash, uint64_t job, uint64_t spec_hash)
{
    key_table_add(&core->keys, key_hash, job, spec_hash);
}
