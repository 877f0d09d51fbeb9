/* SPDX-License-Identifier: MIT */
/*
 * What keeps the scheduler from parking a job by its own rule, beyond what the job's record says
 * (sched/from_record.h): that a job with the same command was asked and refused, or could not return from
 * whomever's park, which is a row of the store until one with this command is parked and returns; that it
 * runs on a terminal; and that its contents
 * would not fit what its node may keep for parked jobs. The first follows from events. The others follow
 * from what its node reports, and each change of them is a change of the cluster, so that a replay of the
 * journal decides the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/park.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/usage.h"

#define ROW_KIND     "park_refusal"
#define REFUSALS_MAX 4096U // the earliest ones are forgotten

static const struct record_field refusal_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct park_refusal, stem, 0),
    RECORD_FIELD(2, RECORD_STRING, struct park_refusal, text, EVENT_TEXT_MAX),
};

const struct record_type park_refusal_record =
    RECORD_TYPE(496, "refusal to be parked", struct park_refusal, refusal_fields);

/* --- commands that refuse --- */

static const char *row_key(uint64_t stem, char *key, size_t size)
{
    (void)snprintf(key, size, "%016" PRIx64, stem);
    return key;
}

static void drop(struct core_park_rule *rule, struct park_refusal *refusal)
{
    free(refusal->text);
    for (struct park_refusal *next = refusal + 1; next < rule->refusals + rule->count; next++)
        next[-1] = *next;
    rule->count--;
}

static void add(struct core_park_rule *rule, uint64_t stem, const char *text)
{
    rule->refusals = xreallocarray(rule->refusals, rule->count + 1, sizeof(*rule->refusals));
    rule->refusals[rule->count++] = (struct park_refusal){ .stem = stem, .text = xstrdup(text) };
}

static void forget(struct core *core, uint64_t stem)
{
    char key[24];
    struct park_refusal *refusal = core_find_park_refusal(core, stem);
    if (refusal == NULL)
        return;
    drop(core->park_rule, refusal);
    store_batch_remove(core_batch(core)->changes, ROW_KIND, row_key(stem, key, sizeof(key)));
}

static void remember(struct core *core, uint64_t stem, const char *text)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    char key[24];
    forget(core, stem);
    if (core->park_rule->count == REFUSALS_MAX)
        forget(core, core->park_rule->refusals[0].stem);
    add(core->park_rule, stem, text);
    record_encode(&park_refusal_record, &core->park_rule->refusals[core->park_rule->count - 1], &bytes);
    store_batch_put(core_batch(core)->changes, ROW_KIND, row_key(stem, key, sizeof(key)), &bytes);
}

static int load(struct core *core, const char *key, const uint8_t *bytes, size_t length, struct error *err)
{
    struct park_refusal refusal = { 0 };
    int r = record_decode(&park_refusal_record, bytes, length, &refusal, err);
    (void)key;
    if (r == 0 && core_find_park_refusal(core, refusal.stem) == NULL)
        add(core->park_rule, refusal.stem, refusal.text);
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
    bool is_over = job_state_is_active(news->before) && !job_state_is_active(job->state);
    if ((job_park_was_refused(job, news->event) && park_cause_is_rule(job_park(job)->cause)) ||
        job_park_was_lost(job, news->event))
        remember(core, core_stem(job), job_park(job)->text != NULL ? job_park(job)->text : "no reason");
    else if (job_park_is_over(job, news->event))
        forget(core, core_stem(job));
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
    for (size_t i = 0; i < core->park_rule->count; i++)
        free(core->park_rule->refusals[i].text);
    free(core->park_rule->refusals);
    free(core->park_rule);
}

static const struct core_kind kinds[] = {
    { .kind = ROW_KIND, .load = load },
    { .kind = NULL },
};

const struct core_concern core_concern_park_rule = {
    .name = "park_rule",
    .init = init,
    .free = clear,
    .kinds = kinds,
    .event = on_event,
    .usage = on_usage,
    .gone = on_gone,
};
