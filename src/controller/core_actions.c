/* SPDX-License-Identifier: MIT */
/*
 * From a job's durable state to what the agents must hear: starting wants LAUNCH, stopping wants STOP.
 * Messages may be lost with their link; after the next HELLO the same function says them again, and agents
 * take each of them twice without harm.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core_private.h"

#define RESIDENT_SPECS_MAX (16U << 20) // bytes of specs kept in memory for jobs that will start soon

static size_t spec_size(const struct job_spec *spec)
{
    size_t bytes = sizeof(*spec);
    const struct strings *lists[] = { &spec->command, &spec->env };
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            bytes += strlen(lists[i]->items[k]) + 1 + sizeof(char *);
    return bytes;
}

void core_keep_spec(struct core *core, struct core_job *entry, struct job_spec *spec)
{
    core_drop_spec(core, entry);
    size_t bytes = spec_size(spec);
    bool is_needed_now = entry->job->state == JOB_STARTING;
    if (entry->job->state == JOB_DONE ||
        (!is_needed_now && core->resident_spec_bytes + bytes > RESIDENT_SPECS_MAX)) {
        job_spec_free(spec);
        return;
    }
    entry->spec = spec;
    entry->spec_bytes = bytes;
    core->resident_spec_bytes += bytes;
}

void core_drop_spec(struct core *core, struct core_job *entry)
{
    core->resident_spec_bytes -= entry->spec_bytes;
    entry->spec_bytes = 0;
    job_spec_free(take_ptr(entry->spec));
}

void core_on_spec(struct core *core, uint64_t job, struct job_spec *spec)
{
    struct core_job *entry = core_find(core, job);
    if (entry == NULL || spec == NULL) {
        job_spec_free(spec);
        return;
    }
    entry->is_fetching = false;
    core_keep_spec(core, entry, spec);
    core_act(core, entry);
}

static void send_launch(struct core *core, struct core_job *entry, uint32_t link)
{
    const struct job *job = entry->job;
    if (entry->spec == NULL) {
        if (!entry->is_fetching)
            core->effects.fetch_spec(core->effects.arg, job->id);
        entry->is_fetching = true;
        return;
    }
    struct message_launch launch = {
        .job = job->id,
        .attempt = job->attempt,
        .token = job->token,
        .uid = job->uid,
        .gid = job->gid,
        .gpus = job->grants,
        .spec = { .items = entry->spec, .count = 1 },
    };
    core->effects.send(core->effects.arg, link, &message_launch_record, &launch);
}

static void send_stop(struct core *core, const struct core_job *entry, uint32_t link)
{
    const struct job *job = entry->job;
    struct message_stop stop = {
        .job = job->id,
        .attempt = job->attempt,
        .token = job->token,
        .signal = SIGTERM,
        .grace_ms = entry->grace_ms < 0 ? core->options.grace_ms : entry->grace_ms,
    };
    core->effects.send(core->effects.arg, link, &message_stop_record, &stop);
}

void core_act(struct core *core, struct core_job *entry)
{
    const struct job *job = entry->job;
    if (!job_state_is_active(job->state) || entry->changed_in > core->durable_batch)
        return;
    const struct core_node *node = core_find_node(core, job->node);
    if (node == NULL || !node->is_up)
        return;
    if (job->state == JOB_STARTING)
        send_launch(core, entry, node->link);
    else if (job->state == JOB_STOPPING)
        send_stop(core, entry, node->link);
    else
        core_drop_spec(core, entry);
}
