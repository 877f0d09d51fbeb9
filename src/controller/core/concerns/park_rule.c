/* SPDX-License-Identifier: MIT */
/*
 * What keeps the scheduler from parking a job by its own rule, beyond what the job's record says
 * (sched/from_record.h): that a job with the same command was asked and refused some time ago, or could not
 * return from whomever's park (job/park_refusals.h, a row of the store for each command); that it runs on a
 * terminal; and that its contents would not fit what its node may keep for parked jobs. The first follows
 * from events. The others follow from what its node reports, and each change of them is a change of the
 * cluster, so that a replay of the journal decides the same.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/park.h"
#include "controller/core/state.h"
#include "job/usage.h"

/* --- commands that refuse --- */

static void forget(struct core *core, uint64_t command_hash)
{
    if (park_refusals_drop(&core->park_rule->refusals, command_hash))
        core_remove_park_refusal(core, command_hash);
}

static void remember(struct core *core, uint64_t command_hash, const char *text, bool is_lost)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[PARK_REFUSAL_KEY];
    struct park_refusals *refusals = &core->park_rule->refusals;
    struct park_refusal refusal = park_refusals_next(refusals, command_hash, text, is_lost, core->now_ms);
    record_encode(&park_refusal_record, &refusal, &bytes);
    uint64_t gone = park_refusals_put(refusals, &refusal);
    if (gone != 0)
        core_remove_park_refusal(core, gone);
    store_batch_put(
        core_batch(core)->changes, CORE_PARK_REFUSAL, core_park_refusal_key(command_hash, key), &bytes);
}

static int load(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct park_refusal refusal = { 0 };
    int r = record_decode(&park_refusal_record, bytes, length, &refusal, err);
    if (r == 0)
        (void)park_refusals_put(&core->park_rule->refusals, &refusal);
    record_clear(&park_refusal_record, &refusal);
    return r;
}

/* --- what nodes report --- */

static void set_bar(struct core *core, struct core_entry *entry, char *why)
{
    struct core_extra *extra = core_make_extra(entry);
    struct cluster_change change = { .kind = CHANGE_PARK_BAR, .job = entry->job->id, .text = why };
    struct cluster *cluster = sched_cluster(core->sched);
    struct cluster_node *node = cluster_find(cluster, entry->job->node);
    free(extra->park_bar);
    extra->park_bar = why;
    core_change_cluster(core, &change);
    if (why == NULL && node != NULL)
        cluster_touch(cluster, node); // those that it keeps from starting are tried again
}

/* How much it has at most, and its node may keep; NULL: it fits, or has not been measured. */
static char *why_too_large(const struct core *core, const struct core_entry *entry)
{
    struct optional peak = usage_gpu_memory_peak(core_extra(entry)->usage);
    uint64_t room = core_park_room(core, entry->job->node, entry->job->id);
    uint64_t bytes = peak.is_known ? (uint64_t)peak.value * entry->job->grants.count : 0;
    char has[32], may[32];
    if (bytes <= room)
        return NULL;
    format_size(bytes, has, sizeof(has));
    format_size(room, may, sizeof(may));
    return xasprintf(
        "it has up to %s of GPU memory, and node %s can keep %s for one more parked job (park-max)", has,
        entry->job->node, may);
}

static char *why_barred(
    const struct core *core, const struct core_entry *entry, const struct attempt_usage *usage)
{
    return usage->is_on_terminal != 0 ? xstrdup("it runs on a terminal") : why_too_large(core, entry);
}

static void on_usage(struct core *core, struct core_entry *entry, const struct attempt_usage *usage)
{
    if (core->options.sched.parking != PARKING_AUTO || job_is_wide(entry->job) ||
        job_park(entry->job)->phase != PARK_NONE || entry->job->grants.count == 0)
        return;
    char *why = why_barred(core, entry, usage);
    if ((why == NULL) != (core_extra(entry)->park_bar == NULL))
        set_bar(core, entry, why);
    else
        free(why);
}

/* --- the hooks --- */

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    bool is_over = (news->bits & CORE_ON_OVER) != 0;
    bool is_lost = job_park_was_lost(job, news->event);
    if (is_lost || (job_park_was_refused(job, news->event) && park_cause_is_rule(job_park(job)->cause)))
        remember(core, core_command_hash(job),
            job_park(job)->text != NULL ? job_park(job)->text : "no reason", is_lost);
    else if (job_park_is_over(job, news->event))
        forget(core, core_command_hash(job));
    if (is_over && core_extra(entry)->park_bar != NULL)
        free(take_ptr(core_make_extra(entry)->park_bar));
}

static void on_gone(struct core *core, struct core_entry *entry)
{
    if (core_extra(entry)->park_bar != NULL)
        free(take_ptr(core_make_extra(entry)->park_bar));
}

static void init(struct core *core)
{
    core->park_rule = xcalloc(1, sizeof(*core->park_rule));
}

static void clear(struct core *core)
{
    park_refusals_clear(&core->park_rule->refusals);
    free(core->park_rule);
}

static const struct core_kind kinds[] = {
    { .kind = CORE_PARK_REFUSAL, .load = load },
    { .kind = NULL },
};

const struct core_concern core_concern_park_rule = {
    .name = "park_rule",
    .init = init,
    .free = clear,
    .kinds = kinds,
    .events = CORE_ON(EVENT_STOP) | CORE_ON(EVENT_UNPARKED) | CORE_ON_OVER,
    .event = on_event,
    .usage = on_usage,
    .gone = on_gone,
};
