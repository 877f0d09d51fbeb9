/* SPDX-License-Identifier: MIT */
/*
 * From a job's durable state to what the agents must hear: starting wants LAUNCH, stopping wants STOP,
 * running wants TERMS when they are not those of its LAUNCH any more (of an attempt on several nodes:
 * core/parts.c). Messages may be lost with their link; after the next HELLO the same function says them
 * again, and agents take each of them twice without harm.
 */
#include "controller/core/private.h"

void core_act(struct core *core, struct core_entry *entry)
{
    const struct job *job = entry->job;
    if (job->state == JOB_QUEUED && job->ask->lease_pid != 0)
        core_send_await(core, entry);
    if (!job_state_is_active(job->state) || entry->changed_in > core->durable_batch)
        return;
    if (job_is_wide(job)) {
        core_parts_act(core, entry);
        return;
    }
    const struct core_node *node = core_find_node(core, job->node);
    if (node == NULL || !node->is_up)
        return;
    if (job->state == JOB_STARTING)
        (void)core_send_launch(core, entry, 0, node->link);
    else if (job->state == JOB_STOPPING)
        core_send_stop(core, entry, 0, node->link);
    else if (job_run(job)->terms > 0)
        core_send_terms(core, job, 0, node->link);
    else if (core_extra(entry)->array == NULL || !core_has_room_for_specs(core))
        core_drop_spec(core, core_spec_owner(entry));
}

void core_on_spec(struct core *core, uint64_t job, struct job_spec *spec)
{
    struct core_entry *entry = core_find(core, job);
    if (entry == NULL) {
        job_spec_free(spec);
        return;
    }
    entry->is_fetching = false;
    core_keep_spec(core, entry, spec);
    core_act(core, entry);
    for (struct core_entry *member = core_extra(entry)->members; member != NULL;
         member = core_extra(member)->member_after)
        core_act(core, member);
}
