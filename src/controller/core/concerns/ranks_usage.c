/* SPDX-License-Identifier: MIT */
/*
 * The usage of an attempt on several nodes, merged from that of its ranks. Each rank is reported once a
 * second, and a merge reads all of them: a job on a thousand nodes is not merged for each report.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/concerns/ranks.h"
#include "controller/core/entry.h"
#include "job/usage_merge.h"

#define MERGES_PER_ROUND 16U // merges while each rank is reported once

static const struct job_usage *last_report(const struct core_rank *rank)
{
    return rank->usage;
}

static const struct job_usage *at_end(const struct core_rank *rank)
{
    return rank->exit.usage.items;
}

static struct job_usage *merge(
    const struct core_entry *entry, const struct job_usage *(*usage_of)(const struct core_rank *rank))
{
    const struct core_ranks *ranks = core_extra(entry)->ranks;
    _cleanup_free_ size_t *gpus = job_count_gpus(entry->job);
    _cleanup_free_ struct usage_part *parts = xcalloc(ranks->count, sizeof(*parts));
    for (size_t i = 0; i < ranks->count; i++)
        parts[i] = (struct usage_part){ usage_of(&ranks->items[i]), gpus[i] };
    return job_usage_merge(parts, ranks->count);
}

void core_ranks_take_usage(struct core_entry *entry, struct core_rank *rank, const struct job_usage *usage)
{
    struct core_extra *extra = core_make_extra(entry);
    job_usage_free(rank->usage);
    rank->usage = job_usage_copy(usage);
    extra->ranks->n_fresh++;
    size_t n_open = extra->ranks->count - extra->ranks->n_over;
    if (extra->usage != NULL && extra->ranks->n_fresh * MERGES_PER_ROUND < n_open)
        return;
    extra->ranks->n_fresh = 0;
    job_usage_free(extra->usage);
    extra->usage = merge(entry, last_report);
}

struct job_usage *core_ranks_final_usage(const struct core_entry *entry)
{
    return merge(entry, at_end);
}
