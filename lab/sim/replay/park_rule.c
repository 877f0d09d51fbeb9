/* SPDX-License-Identifier: MIT */
/* Which jobs the scheduler may park by its own rule, and which borrow GPUs: as controller/core/park.c and its
 * concern decide, from the journal alone. */
#include "lab/sim/replay/private.h"
#include "sched/from_record.h"

int replay_park_bar(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    struct replay_job *entry = replay_entry(replay, change->job);
    if (entry == NULL || entry->job == NULL)
        return 0; // mgpud has removed it
    entry->is_park_barred = change->text != NULL;
    struct cluster *cluster = sched_cluster(replay->sched);
    struct cluster_node *node = change->text == NULL ? cluster_find(cluster, entry->job->node) : NULL;
    if (node != NULL)
        cluster_touch(cluster, node);
    return 0;
}

bool replay_may_park(const struct replay *replay, uint64_t id)
{
    const struct replay_job *entry = replay_entry(replay, id);
    return entry != NULL && entry->job != NULL && !entry->is_park_barred &&
           park_is_permitted(sched_cluster(replay->sched), entry->job) &&
           !park_refusals_bar(&replay->refusals, entry->command_hash, replay->at_ms);
}

bool replay_may_borrow(const struct replay *replay, uint64_t id)
{
    const struct replay_job *entry = replay_entry(replay, id);
    return entry != NULL && entry->job != NULL && park_may_borrow(sched_cluster(replay->sched), entry->job) &&
           park_refusals_bar(&replay->refusals, entry->command_hash, replay->at_ms);
}

void replay_note_park(struct replay *replay, const struct replay_job *entry, const struct job_event *event)
{
    const struct job *job = entry->job;
    bool is_lost = job_park_was_lost(job, event);
    if (is_lost || (job_park_was_refused(job, event) && park_cause_is_rule(job_park(job)->cause))) {
        struct park_refusal refusal =
            park_refusals_next(&replay->refusals, entry->command_hash, NULL, is_lost, replay->at_ms);
        (void)park_refusals_put(&replay->refusals, &refusal);
    } else if (job_park_is_over(job, event)) {
        (void)park_refusals_drop(&replay->refusals, entry->command_hash);
    }
}
