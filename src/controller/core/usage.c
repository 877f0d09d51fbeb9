/* SPDX-License-Identifier: MIT */
/*
 * Resource usage of running jobs, from the last reports of their agents. It is used for display and for idle
 * jobs (core/concerns/idle.c); it is not stored, and after a restart of the controller it is available again
 * a second later. The final usage is part of the end.
 */
#include "controller/core/usage.h"

#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/usage.h"

static bool is_live(const struct core_entry *entry)
{
    const struct core_extra *extra = core_extra(entry);
    return extra->usage != NULL && job_state_is_active(entry->job->state) &&
           extra->usage_token == entry->job->token;
}

/* Finding a job takes three reads from memory, each of which depends on the one before. Those for all jobs of
 * a node are started together. */
static void read_ahead(const struct core *core, const struct attempt_usage *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(map_bucket(&core->jobs.map, map_hash(items[i].id.job)));
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(*map_bucket(&core->jobs.map, map_hash(items[i].id.job)));
    for (size_t i = 0; i < count; i++) {
        struct map_link *first = *map_bucket(&core->jobs.map, map_hash(items[i].id.job));
        if (first != NULL) {
            const struct core_entry *entry = MAP_ITEM(first, struct core_entry, link);
            __builtin_prefetch(entry->job);
            __builtin_prefetch(entry->extra);
        }
    }
}

void core_take_usages(struct core *core, const struct record_list *usages)
{
    const struct attempt_usage *items = usages->items;
    if (core->jobs.map.count > 0)
        read_ahead(core, items, usages->count);
    for (size_t i = 0; i < usages->count; i++) {
        struct core_entry *entry = core_find(core, items[i].id.job);
        /* A late report about an abandoned attempt does not apply to the current one. */
        if (entry == NULL || entry->job->token != items[i].token || items[i].usage.count != 1 ||
            !job_state_is_active(entry->job->state))
            continue;
        if (!job_is_wide(entry->job)) {
            job_usage_free(core_extra(entry)->usage);
            core_make_extra(entry)->usage = job_usage_copy(items[i].usage.items);
        }
        core_make_extra(entry)->usage_token = items[i].token;
        core_hook_usage(core, entry, &items[i]);
    }
}

void core_drop_usage(struct core_entry *entry)
{
    if (core_extra(entry)->usage == NULL)
        return;
    struct core_extra *extra = core_make_extra(entry);
    job_usage_free(take_ptr(extra->usage));
    extra->usage_token = 0;
}

const struct job_usage *core_usage(const struct core_entry *entry)
{
    if (job_state_is_active(entry->job->state))
        return is_live(entry) ? core_extra(entry)->usage : NULL;
    return job_run(entry->job)->usage;
}
