/* SPDX-License-Identifier: MIT */
/*
 * Jobs that start on the CPU while the GPUs that they get next are still used (job/park.h). Which job that
 * is, is a query of the scheduler (sched/sched_early.c), made when something is durable, and again when the
 * first job comes near enough to its GPUs. Its start is an allocation like any other, on GPUs that are not
 * free; from then on it waits for them like a parked job, and the concern `park` gives them to it.
 *
 * One start is decided at a time: the next one sees what the node has left.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/concerns/early_commands.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define EARLY_FEATURE "early" // of nodes, see agent/confine/node_features.c

struct core_earlies {
    size_t n_asking; // waiting jobs that asked for it
    int64_t due_ms;  // boot clock: when the scheduler is asked again; TIME_NEVER: not by itself
};

/* --- who --- */

static bool is_asking(const struct job *job)
{
    return job->state == JOB_QUEUED && job->ask->early && !job_is_array(job);
}

static void count(struct core *core, struct core_entry *entry)
{
    bool is_now = is_asking(entry->job);
    if (is_now == core_extra(entry)->is_asking)
        return;
    core_make_extra(entry)->is_asking = is_now;
    core->earlies->n_asking += is_now ? 1 : (size_t)-1;
}

/* It asked, or jobs like it use their GPUs late. */
static bool is_candidate(const struct core *core, const struct job *job)
{
    bool is_auto = core->options.early.mode == EARLY_AUTO && job->state == JOB_QUEUED && !job_is_array(job) &&
                   !job->ask->no_early;
    return is_asking(job) || (is_auto && early_commands_is_late(core, job));
}

/* An attempt that was given back may have been because of this: the next one starts as usual. */
static bool may_start(void *arg, uint64_t job, uint32_t position)
{
    const struct core *core = arg;
    const struct core_entry *entry = core_find(core, job);
    const struct core_node *node = core_find_node(core, sched_cluster(core->sched)->nodes[position].name);
    if (entry == NULL || !is_candidate(core, entry->job) || core_extra(entry)->returns > 0 || node == NULL ||
        !node->is_up || node->n_orphaned > 0 || node->is_behind_gap)
        return false;
    const struct node_feature *feature = core_find_feature(node, EARLY_FEATURE);
    return feature != NULL && feature->is_on != 0;
}

static bool is_ending(void *arg, uint64_t job)
{
    const struct core_entry *entry = core_find(arg, job);
    return entry != NULL && entry->job->state == JOB_STOPPING;
}

/* Adds the job's GPUs that the scheduler knows. It must not learn of others from a query: their order decides
 * between equal places. */
static void add_gpus(struct cluster *cluster, const struct job *job, struct alloc_gpu *list, size_t *count)
{
    const struct gpu_grant *grants = job->grants.items;
    for (size_t i = 0; i < job->grants.count; i++) {
        const struct cluster_node *node =
            cluster_find(cluster, grants[i].node != NULL ? grants[i].node : job->node);
        const struct cluster_gpu *gpu = node != NULL ? cluster_find_gpu(node, grants[i].uuid) : NULL;
        if (gpu != NULL)
            list[(*count)++] =
                (struct alloc_gpu){ .node = node->position, .gpu = (uint32_t)(gpu - node->gpus) };
    }
}

/* The GPUs that jobs wait for which run without them, or are parked. The caller frees the list. */
static struct alloc_gpu *list_awaited(const struct core *core, size_t *ret_count)
{
    struct alloc_gpu *awaited = NULL;
    *ret_count = 0;
    for (const struct core_entry *entry = core->active_first; entry != NULL;
         entry = core_extra(entry)->active_after) {
        const struct job *job = entry->job;
        if (job_park(job)->phase != PARK_WAITING)
            continue;
        awaited = xreallocarray(awaited, *ret_count + job->grants.count + 1, sizeof(*awaited));
        add_gpus(sched_cluster(core->sched), job, awaited, ret_count);
    }
    return awaited;
}

/* --- when --- */

/* False: none may start now; sets when the next one may. */
static bool find(struct core *core, struct sched_early *ret)
{
    size_t n_awaited;
    int64_t again_ms;
    _cleanup_free_ struct alloc_gpu *awaited = list_awaited(core, &n_awaited);
    const struct sched_early_rules rules = {
        .within_ms = core->options.early.within_ms,
        .may_start = may_start,
        .is_ending = is_ending,
        .arg = core,
        .awaited = awaited,
        .n_awaited = n_awaited,
    };
    int64_t now_ms = core->now_ms != 0 ? core->now_ms : core->last_ms;
    bool is_found = sched_find_early(core->sched, now_ms, &rules, ret, &again_ms);
    /* A job may become eligible by the clock alone, which the pass at that time notices. */
    int64_t due_ms = core_boot_at(core, again_ms), pass_ms = core_boot_at(core, sched_next_ms(core->sched));
    if (pass_ms < due_ms)
        due_ms = pass_ms + 1;
    core->earlies->due_ms = is_found ? core->boot_ms : due_ms;
    return is_found;
}

static bool is_wanted(const struct core *core)
{
    enum early_mode mode = core->options.early.mode;
    return (core->earlies->n_asking > 0 && mode != EARLY_NEVER) ||
           (mode == EARLY_AUTO && early_commands_has_late(core));
}

/* While the scheduler has a pass to do, the next job is not known; it is durable after that. */
static void check_next(struct core *core)
{
    struct sched_early early;
    core->earlies->due_ms = TIME_NEVER;
    if (is_wanted(core) && !sched_is_dirty(core->sched) && find(core, &early))
        allocation_clear(&early.place);
}

static int64_t next_ms(const struct core *core)
{
    return core->earlies->due_ms;
}

static void run(struct core *core)
{
    struct sched_early early;
    if (core->earlies->due_ms > core->boot_ms)
        return;
    core->earlies->due_ms = TIME_NEVER;
    if (!is_wanted(core))
        return;
    if (sched_is_dirty(core->sched) || sched_next_ms(core->sched) <= core->now_ms) {
        core->earlies->due_ms = core->boot_ms + 1; // after the pass of this turn
        return;
    }
    if (!find(core, &early))
        return;
    core->earlies->due_ms = TIME_NEVER;
    core_allocate(core, core_find(core, early.job), &early.place, true);
    allocation_clear(&early.place);
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    early_commands_note(core, entry, news->event);
    if (entry->job->ask->early || core_extra(entry)->is_asking)
        count(core, entry);
}

static void on_resume(struct core *core, struct core_entry *entry)
{
    early_commands_note_start(entry);
    count(core, entry);
}

static void on_gone(struct core *core, struct core_entry *entry)
{
    if (core->earlies != NULL && core_extra(entry)->is_asking)
        core->earlies->n_asking--;
}

static void init(struct core *core)
{
    early_commands_init(core);
    core->earlies = xcalloc(1, sizeof(*core->earlies));
    core->earlies->due_ms = TIME_NEVER;
}

static void clear(struct core *core)
{
    free(take_ptr(core->earlies));
    early_commands_free(core);
}

static const struct core_kind kinds[] = {
    { .kind = EARLY_COMMAND_KIND, .load = early_commands_load },
    { 0 },
};

const struct core_concern core_concern_early = {
    .name = "early",
    .init = init,
    .free = clear,
    .kinds = kinds,
    .resume = on_resume,
    .events = CORE_ON_ALL,
    .event = on_event,
    .gone = on_gone,
    .durable = check_next,
    .next_ms = next_ms,
    .run = run,
};
