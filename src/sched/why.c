/* SPDX-License-Identifier: MIT */
/*
 * The reasons come from the functions that make the decisions: a request is placed ignoring holds, then
 * ignoring reservations, and the one that makes a difference is the reason. Sentences contain no clock times
 * and no user names, which the pure scheduler does not have; the code that prints them adds these from
 * `until_ms` and `jobs`.
 */
#include "sched/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "job/cluster_change.h"
#include "sched/sched_private.h"

#define BRIEF_QUEUE   1000U // waiting jobs
#define BRIEF_MS      2000
#define MISSING_SHOWN 4U

struct why_reason *why_add(struct why *why, enum why_code code, int64_t until_ms)
{
    if (why->n_reasons == sizeof(why->reasons) / sizeof(why->reasons[0]))
        return NULL;
    struct why_reason *reason = &why->reasons[why->n_reasons++];
    *reason = (struct why_reason){ .code = code, .until_ms = until_ms };
    return reason;
}

void why_add_job(struct why_reason *reason, uint64_t job)
{
    for (size_t i = 0; i < reason->n_jobs; i++)
        if (reason->jobs[i] == job)
            return;
    if (reason->n_jobs < sizeof(reason->jobs) / sizeof(reason->jobs[0]))
        reason->jobs[reason->n_jobs++] = job;
}

static void add_gpu(struct why_reason *reason, uint32_t node, uint32_t gpu)
{
    if (reason->n_gpus < sizeof(reason->gpus) / sizeof(reason->gpus[0]))
        reason->gpus[reason->n_gpus++] = (struct alloc_gpu){ .node = node, .gpu = gpu };
}

/* --- blockers outside the queue --- */

static void explain_dependency(const struct sched *sched, const struct sched_job *job, struct why *why)
{
    bool is_never = (job->blockers & BLOCK_NEVER) != 0;
    struct why_reason *reason = why_add(why, is_never ? WHY_DEPENDENCY_NEVER : WHY_DEPENDENCY, TIME_NEVER);
    if (reason == NULL)
        return;
    const struct job_rules *rules = job->rules;
    bool are_known = true;
    int64_t until = 0;
    for (size_t i = 0; i < rules->n_after; i++) {
        const struct sched_job *named = sched_find(sched, rules->after[i].job);
        why_add_job(reason, rules->after[i].job);
        if (rules->after[i].due_ms != 0) {
            until = rules->after[i].due_ms > until ? rules->after[i].due_ms : until;
            continue;
        }
        are_known &= named != NULL && named->run != NULL && rules->after[i].kind != AFTER_START;
        if (named != NULL && named->run != NULL && named->run->expected_end_ms > until)
            until = named->run->expected_end_ms;
    }
    reason->until_ms = are_known && !is_never ? until : TIME_NEVER;
    if (is_never)
        (void)snprintf(reason->text, sizeof(reason->text),
            "its dependency can never be satisfied: job %llu did not end as required",
            (unsigned long long)(rules->n_after > 0 ? rules->after[0].job : 0));
    else if (rules->n_after == 1 && rules->after[0].delay_ms != 0) {
        char delay[32];
        format_duration(rules->after[0].delay_ms, delay, sizeof(delay));
        (void)snprintf(reason->text, sizeof(reason->text), "waiting until %s after the start of job %llu",
            delay, (unsigned long long)rules->after[0].job);
    } else if (rules->n_after == 1)
        (void)snprintf(reason->text, sizeof(reason->text), "waiting for job %llu (%s)",
            (unsigned long long)rules->after[0].job, after_kind_name(rules->after[0].kind));
    else
        (void)snprintf(reason->text, sizeof(reason->text), "waiting for %zu jobs", rules->n_after);
}

static void explain_blockers(const struct sched *sched, const struct sched_job *job, struct why *why)
{
    const struct {
        uint32_t bit;
        enum why_code code;
        const char *text;
        int64_t until_ms;
    } rows[] = {
        { BLOCK_HELD_ADMIN, WHY_HELD_ADMIN, "held by an administrator", TIME_NEVER },
        { BLOCK_HELD_USER, WHY_HELD_USER, "held by its owner", TIME_NEVER },
        { BLOCK_BEGIN, WHY_BEGIN_TIME, "waiting for its begin time",
            job->rules != NULL ? job->rules->begin_ms : 0 },
        { BLOCK_BACKOFF, WHY_BACKOFF, "its last attempt failed; it will be tried again",
            job->rules != NULL ? job->rules->backoff_ms : 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((job->blockers & rows[i].bit) == 0)
            continue;
        struct why_reason *reason = why_add(why, rows[i].code, rows[i].until_ms);
        if (reason == NULL)
            continue;
        reason->is_own_failure = rows[i].code == WHY_BACKOFF;
        (void)snprintf(reason->text, sizeof(reason->text), "%s", rows[i].text);
    }
    if ((job->blockers & (BLOCK_DEPENDENCY | BLOCK_NEVER)) != 0)
        explain_dependency(sched, job, why);
    bool is_kept = job->blockers == 0 && !sched_element_may_start(sched, job);
    if (job->rules == NULL || (!job->rules->is_at_limit && !is_kept))
        return;
    uint32_t running =
        is_kept ? sched_find(sched, job->rules->array)->rules->elements_running : job->rules->elements_open;
    struct why_reason *reason = why_add(why, WHY_USER_LIMIT, TIME_NEVER);
    if (reason != NULL)
        (void)snprintf(reason->text, sizeof(reason->text), "%u element%s of this array run%s (its limit)",
            running, running == 1 ? "" : "s", running == 1 ? "s" : "");
}

static void explain_limit(const struct sched *sched, const struct queue_class *class, struct why *why)
{
    char text[160];
    const struct account *account =
        sched_limiting(sched, &class->key, class->account, class->group, text, sizeof(text));
    if (account == NULL)
        return;
    int64_t until = sched_limit_ends(sched, &class->key, account);
    enum why_code code = until != TIME_NEVER              ? WHY_QUOTA
                         : account->kind == ACCOUNT_GROUP ? WHY_GROUP_LIMIT
                                                          : WHY_USER_LIMIT;
    struct why_reason *reason = why_add(why, code, until);
    if (reason != NULL)
        (void)snprintf(reason->text, sizeof(reason->text), "limit of its %s: %s",
            account->kind == ACCOUNT_GROUP ? "group" : "owner", text);
}

/* --- missing resources --- */

/* Constraints to ignore. */
enum without { WITHOUT_NOTHING, WITHOUT_STARTS = 1, WITHOUT_HOLDS = 2, WITHOUT_RESERVATIONS = 4 };

static bool fits(const struct sched *sched, const struct queue_class *class, unsigned without)
{
    uint64_t usable[16], work = 0;
    _cleanup_(allocation_clear) struct allocation allocation = { 0 };
    struct fit fit;
    sched_fit_of(sched, class, usable, 16, &fit);
    _cleanup_free_ uint64_t *all = xcalloc(sched->n_reservations + 1, sizeof(*all));
    for (size_t i = 0; i < sched->n_reservations; i++)
        all[i] = sched->reservations[i].id;
    fit.counts_starts = (without & WITHOUT_STARTS) == 0;
    if ((without & WITHOUT_HOLDS) != 0)
        fit.end_ms = sched->now_ms;
    if ((without & WITHOUT_RESERVATIONS) != 0) {
        fit.reservations = all;
        fit.n_reservations = sched->n_reservations;
    }
    bool is_found = placement_choose(
        &placement_first_fit, NULL, &sched->cluster, &class->key.request, &fit, &allocation, &work);
    return is_found;
}

/* Reasons why a GPU is closed; several may apply. */
enum closure {
    CLOSED_EXTERNAL,
    CLOSED_UNCLEAN,
    CLOSED_UNHEALTHY,
    CLOSED_REFUSED,
    CLOSED_PAUSED,
    CLOSED_DRAINED,
    CLOSED_DOWN,
    CLOSURES
};

struct tally {
    uint32_t suitable, open, free, crowded; // GPUs
    uint32_t taken;                         // suitable ones in use by jobs
    uint32_t n_closed[CLOSURES];            // suitable ones that are closed
    struct why_reason closed[CLOSURES];     // their names
};

static bool is_picked(const struct sched_request *request, const char *node, uint32_t index)
{
    for (size_t i = 0; i < request->n_picks; i++)
        if (request->picks[i].index == index &&
            (request->picks[i].node == NULL || strcmp(request->picks[i].node, node) == 0))
            return true;
    return request->n_picks == 0;
}

/* The job could get this GPU if it were free and open. */
static bool suits(const struct sched *sched, const struct sched_request *request,
    const struct cluster_node *node, const struct cluster_gpu *gpu)
{
    return gpu->is_known && cluster_node_admits(node, request) &&
           cluster_gpu_suits(&sched->cluster, gpu, request) && is_picked(request, node->name, gpu->index);
}

/* A GPU shared with an external process is open, except for a job that needs the whole GPU. */
static bool is_used_externally(const struct cluster_gpu *gpu, const struct sched_request *request)
{
    if (cluster_gpu_is_adoptee(gpu, request))
        return false;
    return (gpu->closed & DEVICE_EXTERNAL) != 0 || (gpu->memory_external > 0 && !request_is_shared(request));
}

static void count_closed(const struct cluster_node *node, const struct cluster_gpu *gpu,
    const struct sched_request *request, struct tally *tally)
{
    uint32_t at = (uint32_t)(gpu - node->gpus);
    bool is_gone = node->is_up && !gpu->is_present;
    const bool is_so[CLOSURES] = {
        [CLOSED_EXTERNAL] = is_used_externally(gpu, request),
        [CLOSED_UNCLEAN] = (gpu->closed & DEVICE_UNCLEAN) != 0,
        [CLOSED_UNHEALTHY] = (gpu->closed & DEVICE_UNHEALTHY) != 0 || is_gone,
        [CLOSED_REFUSED] = (gpu->closed & DEVICE_REFUSED) != 0 ||
                           ((gpu->closed & DEVICE_ALONE) != 0 && request_is_shared(request)),
        [CLOSED_PAUSED] = gpu->is_paused,
        [CLOSED_DRAINED] = node->is_drained,
        [CLOSED_DOWN] = !node->is_up,
    };
    for (size_t i = 0; i < CLOSURES; i++) {
        bool is_of_node = i == CLOSED_DRAINED || i == CLOSED_DOWN;
        if (!is_so[i] || (request->gpus == 0 && !is_of_node))
            continue;
        tally->n_closed[i]++;
        add_gpu(&tally->closed[i], node->position, at);
    }
}

/* In use by jobs, so it could not serve the request even if it were open. */
static bool is_taken(const struct cluster_gpu *gpu, const struct sched_request *request)
{
    if (!request_is_shared(request))
        return !cluster_gpu_is_empty(gpu);
    return gpu->is_exclusive || gpu->share_booked + request->share > SHARE_WHOLE ||
           gpu->memory_booked + request->gpu_mem > gpu->memory_bytes;
}

static void count_gpus(const struct sched *sched, const struct queue_class *class, struct tally *tally)
{
    const struct cluster *cluster = &sched->cluster;
    const struct sched_request *request = &class->key.request;
    struct fit fit = { .now_ms = sched->now_ms, .end_ms = sched->now_ms, .limit_ms = sched->now_ms };
    for (uint32_t n = 0; n < cluster->n_nodes; n++) {
        const struct cluster_node *node = &cluster->nodes[n];
        for (uint32_t g = 0; g < node->n_gpus; g++) {
            const struct cluster_gpu *gpu = &node->gpus[g];
            if (!suits(sched, request, node, gpu))
                continue;
            tally->suitable++;
            tally->taken += is_taken(gpu, request);
            count_closed(node, gpu, request, tally);
            if (cluster_gpu_is_open(node, gpu)) {
                tally->open++;
                tally->free += fit_gpu(cluster, node, gpu, request, &fit);
                tally->crowded += gpu->share_slots != 0 && (gpu->closed & DEVICE_CROWDED) != 0;
            }
        }
    }
}

static void explain_closed(const struct tally *tally, struct why *why)
{
    static const struct {
        enum why_code code;
        const char *text;
    } rows[CLOSURES] = {
        [CLOSED_PAUSED] = { WHY_GPU_PAUSED, "paused by an administrator" },
        [CLOSED_UNHEALTHY] = { WHY_GPU_PAUSED, "not healthy" },
        [CLOSED_REFUSED] = { WHY_GPU_PAUSED, "excluded by its mode" },
        [CLOSED_UNCLEAN] = { WHY_GPU_PAUSED, "still being cleared of the previous job" },
        [CLOSED_EXTERNAL] = { WHY_GPU_EXTERNAL, "used by external processes" },
        [CLOSED_DRAINED] = { WHY_NODE_DRAINED, "on drained nodes" },
        [CLOSED_DOWN] = { WHY_NODE_DOWN, "on unreachable nodes" },
    };
    for (size_t i = 0; i < CLOSURES; i++) {
        uint32_t count = tally->n_closed[i];
        if (count == 0)
            continue;
        struct why_reason *reason = why_add(why, rows[i].code, TIME_NEVER);
        if (reason == NULL)
            return;
        for (size_t k = 0; k < tally->closed[i].n_gpus; k++)
            add_gpu(reason, tally->closed[i].gpus[k].node, tally->closed[i].gpus[k].gpu);
        (void)snprintf(reason->text, sizeof(reason->text), "%u suitable GPU%s %s %s", count,
            count == 1 ? "" : "s", count == 1 ? "is" : "are", rows[i].text);
    }
}

size_t why_holders(const struct sched *sched, const struct queue_class *class, struct sched_run ***ret)
{
    const struct sched_request *request = &class->key.request;
    struct sched_run **runs = xcalloc(sched->n_runs + 1, sizeof(struct sched_run *));
    size_t count = 0;
    for (size_t i = 0; i < sched->n_runs; i++) {
        const struct allocation *held = &sched->runs[i]->allocation;
        bool is_in_the_way = request->gpus == 0;
        for (size_t k = 0; k < held->n_gpus && !is_in_the_way; k++) {
            const struct cluster_node *node = &sched->cluster.nodes[held->gpus[k].node];
            is_in_the_way = suits(sched, request, node, &node->gpus[held->gpus[k].gpu]);
        }
        if (is_in_the_way)
            runs[count++] = sched->runs[i];
    }
    qsort(runs, count, sizeof(struct sched_run *), sched_compare_ends);
    *ret = runs;
    return count;
}

static void name_holders(
    const struct sched *sched, const struct queue_class *class, struct why_reason *reason)
{
    struct sched_run **runs;
    size_t count = why_holders(sched, class, &runs);
    for (size_t i = 0; i < count; i++)
        why_add_job(reason, runs[i]->job->entry.job);
    if (reason->until_ms == TIME_NEVER && count > 0 && class->key.request.gpus <= 1)
        reason->until_ms =
            runs[0]->expected_end_ms > sched->now_ms ? runs[0]->expected_end_ms : sched->now_ms + 1;
    free(runs);
}

static void explain_memory(uint64_t bytes, struct why_reason *reason)
{
    char size[32];
    format_size(bytes, size, sizeof(size));
    (void)snprintf(
        reason->text, sizeof(reason->text), "a requested GPU has less than %s of memory free", size);
}

static void explain_resources(const struct sched *sched, const struct queue_class *class,
    const struct tally *tally, int64_t shadow_ms, bool is_brief, struct why *why)
{
    const struct sched_request *request = &class->key.request;
    bool is_memory = request->gpu_mem > 0;
    char asked[128];
    struct why_reason *reason = why_add(why, is_memory ? WHY_GPU_MEMORY : WHY_RESOURCES, shadow_ms);
    if (reason == NULL)
        return;
    if (!is_brief)
        name_holders(sched, class, reason);
    request_text(request, asked, sizeof(asked));
    if (request->gpus > 0 && tally->open == 0)
        (void)snprintf(reason->text, sizeof(reason->text), "requested %s; jobs use %u of %u suitable GPU%s",
            asked, tally->taken, tally->suitable, tally->suitable == 1 ? "" : "s");
    else if (request->gpus == 0)
        (void)snprintf(reason->text, sizeof(reason->text), "requested %s; no node has that much free", asked);
    else if (request->n_picks > 0 && is_memory)
        explain_memory(request->gpu_mem, reason);
    else if (request->n_picks > 0)
        (void)snprintf(reason->text, sizeof(reason->text), "a requested GPU is not free");
    else if (request->is_exclusive && tally->free >= request->gpus)
        (void)snprintf(
            reason->text, sizeof(reason->text), "requested %s; other jobs run on all of them", asked);
    else if (tally->free >= request->gpus)
        (void)snprintf(reason->text, sizeof(reason->text),
            "requested %s; %u of %u GPUs are free, but no single node has them with the requested CPUs and "
            "memory",
            asked, tally->free, tally->open);
    else if (request_is_shared(request) && tally->crowded > 0)
        (void)snprintf(reason->text, sizeof(reason->text),
            "requested %s; %u of %u %s free; %u shared GPU%s too full or too busy for one more job", asked,
            tally->free, tally->open, tally->free == 1 ? "is" : "are", tally->crowded,
            tally->crowded == 1 ? " is" : "s are");
    else
        (void)snprintf(reason->text, sizeof(reason->text), "requested %s; %u of %u %s free", asked,
            tally->free, tally->open, tally->free == 1 ? "is" : "are");
    why_add_kept(sched, request, reason);
}

static bool could_use_node(const struct sched_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_picks; i++)
        if (request->picks[i].node == NULL || strcmp(request->picks[i].node, name) == 0)
            return true;
    return request->n_picks == 0;
}

/* It could run with nodes known from before this mgpud started. False: it could not, or none is missing. */
static bool explain_missing_nodes(
    const struct sched *sched, const struct sched_request *request, struct why *why)
{
    struct error ignored;
    _cleanup_buffer_ struct buffer missing = { 0 };
    size_t count = 0;
    for (size_t i = 0; i < sched->known.n_nodes; i++) {
        const char *name = sched->known.nodes[i].name;
        bool is_missing = !sched->known.nodes[i].is_gone && cluster_find(&sched->cluster, name) == NULL;
        if (!is_missing || !could_use_node(request, name))
            continue;
        if (count < MISSING_SHOWN)
            buffer_printf(&missing, "%s%s", count > 0 ? ", " : "", name);
        count++;
    }
    bool could_run = count > 0 && cluster_check(&sched->known, request, &ignored) == 0;
    struct why_reason *reason = could_run ? why_add(why, WHY_NODE_DOWN, TIME_NEVER) : NULL;
    if (reason != NULL)
        (void)snprintf(reason->text, sizeof(reason->text), "%s %s%s %s not reported since mgpud started",
            count == 1 ? "node" : "nodes", buffer_text(&missing), count > MISSING_SHOWN ? " and more" : "",
            count == 1 ? "has" : "have");
    return could_run;
}

/* True if its partition has no node, or is no longer configured. */
static bool explain_partition(const struct sched *sched, const struct sched_request *request, struct why *why)
{
    struct sched_request any = *request;
    any.share_kind = 0; // a partition without it is not missing
    for (size_t i = 0; i < sched->cluster.n_nodes; i++)
        if (cluster_node_admits(&sched->cluster.nodes[i], &any))
            return false;
    struct why_reason *reason = request->partition != NULL ? why_add(why, WHY_PARTITION, TIME_NEVER) : NULL;
    if (reason != NULL)
        (void)snprintf(reason->text, sizeof(reason->text),
            request->partitions == 0 ? "the configuration has no partition %.60s"
                                     : "no node of partition %.60s has joined",
            request->partition);
    return reason != NULL;
}

/* It fits, but every such node already starts its maximum. */
static void explain_starts(const struct sched *sched, struct why *why)
{
    struct why_reason *reason = why_add(why, WHY_NODE_STARTING, TIME_NEVER);
    bool is_one = sched->cluster.n_nodes == 1;
    if (reason != NULL)
        (void)snprintf(reason->text, sizeof(reason->text),
            "%s%s is starting %u other job%s without GPUs, the maximum at a time",
            is_one ? "node " : "each node that has room for it", is_one ? sched->cluster.nodes[0].name : "",
            sched->settings.node_starts, sched->settings.node_starts == 1 ? "" : "s");
}

static void explain_cluster(struct sched *sched, const struct sched_job *job, bool is_brief, struct why *why)
{
    const struct queue_class *class = job->class;
    struct error err = { 0 };
    struct tally tally = { 0 };
    struct sched_request request = class->key.request; // borrowed
    request.heeds_bars = false;
    if (explain_partition(sched, &request, why))
        return;
    if (cluster_check(&sched->cluster, &request, &err) < 0) {
        if (explain_missing_nodes(sched, &request, why))
            return;
        struct why_reason *reason = why_add(why, WHY_NEVER_FITS, TIME_NEVER);
        if (reason != NULL)
            (void)snprintf(reason->text, sizeof(reason->text), "%.250s", err.message);
        return;
    }
    if (why_explain_bars(sched, class, is_brief, why))
        return;
    int64_t shadow = TIME_NEVER;
    for (size_t i = 0; i < sched->n_holds; i++)
        if (sched->holds[i].class == class && class->first == &job->entry)
            shadow = sched->holds[i].from_ms;
    count_gpus(sched, class, &tally);
    bool does_fit = fits(sched, class, WITHOUT_STARTS | WITHOUT_HOLDS);
    if (does_fit && !fits(sched, class, WITHOUT_HOLDS)) {
        explain_starts(sched, why);
    } else if (!does_fit && fits(sched, class, WITHOUT_STARTS | WITHOUT_HOLDS | WITHOUT_RESERVATIONS)) {
        struct why_reason *reason = why_add(why, WHY_RESERVATION, TIME_NEVER);
        if (reason != NULL)
            (void)snprintf(reason->text, sizeof(reason->text), "the free GPUs are reserved for other users");
    } else if (!does_fit) {
        bool is_short_anyway = tally.suitable - tally.taken < class->key.request.gpus;
        if (class->key.request.gpus == 0 || tally.open > 0 || is_short_anyway)
            explain_resources(sched, class, &tally, shadow, is_brief, why);
        explain_closed(&tally, why);
    }
    if (!is_brief || why->n_reasons == 0)
        why_order(sched, job, does_fit, why);
}

/* A list shows the same for all jobs of a class; with a long queue it is recomputed only after a
 * while. */
static bool take_brief(const struct sched *sched, const struct queue_class *class, struct why *why)
{
    const struct queue_brief *brief = class->brief;
    if (brief == NULL || sched->now_ms - brief->made_ms >= BRIEF_MS)
        return false;
    struct why_reason *reason = why_add(why, (enum why_code)brief->code, TIME_NEVER);
    (void)snprintf(reason->text, sizeof(reason->text), "%s", brief->text);
    return true;
}

/* The first job ahead, if it is resources or order that the job waits for. */
static void add_rule(const struct sched *sched, const struct sched_job *job, struct why *why)
{
    struct why_reason *reason = &why->reasons[0];
    bool is_resources =
        why->n_reasons > 0 && (reason->code == WHY_RESOURCES || reason->code == WHY_GPU_MEMORY);
    if (is_resources || (why->n_reasons > 0 && reason->code == WHY_PRIORITY))
        why_add_rule(sched, job, reason->text, sizeof(reason->text));
}

/* For a job that fits, only its position in the queue counts, not that others are ahead. */
static void keep_brief(const struct sched *sched, struct queue_class *class, const struct why *why)
{
    if (why->n_reasons == 0 || why->reasons[0].code == WHY_PRIORITY)
        return;
    if (class->brief == NULL)
        class->brief = xcalloc(1, sizeof(*class->brief));
    class->brief->made_ms = sched->now_ms;
    class->brief->code = (int)why->reasons[0].code;
    (void)snprintf(class->brief->text, sizeof(class->brief->text), "%s", why->reasons[0].text);
}

void why_reasons(struct sched *sched, int64_t now_ms, uint64_t id, bool is_brief, struct why *ret)
{
    const struct sched_job *job = sched_find(sched, id);
    *ret = WHY_NONE;
    if (now_ms > sched->now_ms)
        sched->now_ms = now_ms;
    if (job == NULL || job->run != NULL)
        return;
    if (!is_brief)
        ret->position = sched_position(sched, job);
    if (ret->position > 0)
        why_explain_bound(sched, job, ret);
    explain_blockers(sched, job, ret);
    if (is_brief && ret->n_reasons > 0)
        return;
    explain_limit(sched, job->class, ret);
    if (is_brief && ret->n_reasons > 0)
        return;
    if (job->blockers != 0 || job->entry.class == NULL || job->class->is_parked)
        return;
    bool is_kept = is_brief && sched->queue.length >= BRIEF_QUEUE;
    if (is_kept && take_brief(sched, job->class, ret))
        return;
    explain_cluster(sched, job, is_brief, ret);
    if (!is_brief)
        why_explain_park(sched, job, ret);
    if (is_brief)
        add_rule(sched, is_kept ? sched_find(sched, job->class->first->job) : job, ret);
    if (is_kept)
        keep_brief(sched, job->class, ret);
}
