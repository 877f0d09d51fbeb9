/* SPDX-License-Identifier: MIT */
/*
 * Policies under which every job may be preempted: running and waiting jobs are ranked together, the best
 * that fit the cluster run, and the others are preempted. By remaining time (SRTF), by attained service in
 * two levels (Gu et al., NSDI 2019, "2D-LAS"), or by the remaining time expected from history.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define LAS_LEVEL (18000.0 * 1000) // GPU-milliseconds: end of the first level
#define WIDE_GPUS 8U               // above, a preemption costs more
#define LOST_MAX  20U              // doublings of the quantum

/* A job that competes to run. */
struct contender {
    struct sched_job *job;
    double key;
    int64_t submit_ms;
    uint64_t id;
    uint64_t gpu_milli; // of one element
    uint32_t elements;  // 1 but for an array
    bool is_kept;       // it runs and may not be moved now
};

static double attained(const struct sched *sched, const struct sched_job *job)
{
    double before = job->rules != NULL ? job->rules->attained : 0;
    if (job->run == NULL)
        return before;
    return before +
           (double)job->run->gpu_milli / SHARE_WHOLE * (double)(sched->now_ms - job->run->allocated_ms);
}

static int64_t remaining(const struct sched *sched, const struct sched_job *job)
{
    struct estimate estimate;
    int64_t done = job->run != NULL     ? sched_run_elapsed(job->run, sched->now_ms)
                   : job->rules != NULL ? job->rules->done_ms
                                        : 0;
    sched_class_estimate(sched, &job->class->key, done, ESTIMATE_INDEX, &estimate);
    return estimate.index_ms;
}

static double key_of(const struct sched *sched, const struct sched_job *job)
{
    switch (sched->settings.policy->preempting) {
    case PREEMPT_LAS: return attained(sched, job) > LAS_LEVEL;
    case PREEMPT_SRTF: return (double)remaining(sched, job);
    default: return 0;
    }
}

int64_t sched_preempt_cost(const struct sched_settings *settings, uint32_t gpus)
{
    int64_t base_ms = gpus > WIDE_GPUS ? settings->preempt_cost_wide_ms : settings->preempt_cost_ms;
    return base_ms + settings->preempt_cost_gpu_ms * gpus;
}

/* The reference simulators have no bound, so comparisons with them use none. */
static int64_t quantum_of(const struct sched *sched, const struct sched_run *run)
{
    int64_t cost_ms = sched_parks(sched) && sched->settings.park_cost_ms > 0
                          ? sched->settings.park_cost_ms
                          : sched_preempt_cost(&sched->settings, run->job->class->key.request.gpus);
    uint32_t lost = run->job->rules != NULL ? run->job->rules->preemptions : 0;
    int64_t quantum_ms = sched->settings.quantum_ms;
    if (sched->settings.counts_gpus_only)
        return quantum_ms;
    return (quantum_ms > 2 * cost_ms ? quantum_ms : 2 * cost_ms) << (lost < LOST_MAX ? lost : LOST_MAX);
}

bool sched_run_is_kept(const struct sched *sched, const struct sched_run *run)
{
    bool is_adopted = run->job->class->key.request.adopted_pid != 0; // mgpu must not stop its process
    return is_adopted || sched->now_ms - run->allocated_ms < quantum_of(sched, run) ||
           !sched_run_may_give_way(sched, run);
}

int64_t sched_preemptive_change(const struct sched *sched, const struct sched_run *run)
{
    int64_t movable = run->allocated_ms + quantum_of(sched, run);
    if (movable > sched->now_ms)
        return movable;
    if (sched->settings.policy->preempting != PREEMPT_LAS || run->gpu_milli == 0)
        return TIME_NEVER;
    double left = LAS_LEVEL - attained(sched, run->job);
    return left < 0 ? TIME_NEVER
                    : sched->now_ms + 1 + (int64_t)(left / ((double)run->gpu_milli / SHARE_WHOLE));
}

static int compare_contenders(const void *a, const void *b)
{
    const struct contender *left = a, *right = b;
    int64_t left_priority = class_priority(left->job->class);
    int64_t right_priority = class_priority(right->job->class);
    if (left_priority != right_priority)
        return left_priority > right_priority ? -1 : 1;
    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    if (left->submit_ms != right->submit_ms)
        return left->submit_ms < right->submit_ms ? -1 : 1;
    return (left->id > right->id) - (left->id < right->id);
}

static struct contender contender_of(const struct sched *sched, struct sched_job *job)
{
    const struct sched_run *run = job->run;
    return (struct contender){
        .job = job,
        .key = key_of(sched, job),
        .submit_ms = job->entry.submit_ms,
        .id = job->entry.job,
        .gpu_milli = (uint64_t)request_gpu_milli(&sched->cluster, &job->class->key.request),
        .elements = run == NULL && job->rules != NULL && job->rules->is_array ? job->rules->elements : 1,
        .is_kept = run != NULL && sched_run_is_kept(sched, run),
    };
}

static size_t collect(struct sched *sched, struct contender **ret)
{
    struct contender *all = xcalloc(sched->queue.length + sched->n_runs + 1, sizeof(*all));
    size_t count = 0;
    for (const struct queue_class *class = queue_first(&sched->queue); class != NULL;
         class = queue_next(class))
        for (struct queue_entry *entry = class->first; entry != NULL; entry = entry->after)
            all[count++] = contender_of(sched, (struct sched_job *)entry);
    for (size_t i = 0; i < sched->n_runs; i++)
        if (!sched->runs[i]->is_giving_way)
            all[count++] = contender_of(sched, sched->runs[i]->job);
    qsort(all, count, sizeof(*all), compare_contenders);
    *ret = all;
    return count;
}

static uint64_t capacity(const struct cluster *cluster)
{
    uint64_t milli = 0;
    for (size_t i = 0; i < cluster->n_nodes; i++)
        for (size_t k = 0; k < cluster->nodes[i].n_gpus; k++)
            milli += cluster_gpu_is_open(&cluster->nodes[i], &cluster->nodes[i].gpus[k]) ? SHARE_WHOLE : 0;
    return milli;
}

static bool start_if_it_fits(struct sched *sched, struct sched_job *job)
{
    uint64_t reservations[16];
    struct allocation allocation = { 0 };
    struct fit fit;
    struct queue_class *class = job->class;
    struct account *limiting = sched_limiting(sched, &class->key, class->account, class->group, NULL, 0);
    sched->counts.classes_tried++;
    if (limiting != NULL || !sched_element_may_start(sched, job))
        return false;
    sched_fit_of(sched, class, reservations, 16, &fit);
    fit.counts_starts = true;
    if (!placement_choose(sched->settings.placement, sched->placement_state, &sched->cluster,
            &class->key.request, &fit, &allocation, &sched->counts.index_work))
        return false;
    sched_start(sched, job, &allocation);
    allocation_clear(&allocation);
    return true;
}

/* The number that fit: all elements of an array that fit start at once, because no later pass is due.
 */
static uint32_t count_in(const struct sched *sched, const struct contender *one, uint64_t left)
{
    const struct queue_class *class = one->job->class;
    if (one->job->run == NULL &&
        sched_limiting(sched, &class->key, class->account, class->group, NULL, 0) != NULL)
        return 0;
    if (one->gpu_milli == 0 || left / one->gpu_milli > one->elements)
        return one->elements;
    return (uint32_t)(left / one->gpu_milli);
}

static bool is_free_for(const struct cluster *cluster, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        const struct alloc_gpu *held = &allocation->gpus[i];
        const struct cluster_gpu *gpu = &cluster->nodes[held->node].gpus[held->gpu];
        bool is_free = held->slot == 0 ? cluster_gpu_is_whole(gpu)
                                       : !gpu->is_exclusive && (gpu->share_slots & 1ULL << held->slot) == 0 &&
                                             gpu->share_booked + held->share <= SHARE_WHOLE &&
                                             held->memory <= cluster_gpu_memory_left(gpu);
        if (!is_free)
            return false;
    }
    for (size_t i = 0; i < allocation->n_nodes; i++) {
        const struct alloc_node *held = &allocation->nodes[i];
        const struct cluster_node *node = &cluster->nodes[held->node];
        if (node->cpu_booked + held->cpu_milli > node->cpu_milli ||
            (node->memory > 0 && node->memory_booked + held->memory > node->memory))
            return false;
    }
    return true;
}

static void take_out(struct sched *sched, const struct allocation *allocation)
{
    cluster_release(&sched->cluster, allocation);
    sched_update_placement(sched, allocation);
}

static void put_in(struct sched *sched, const struct allocation *allocation)
{
    cluster_book(&sched->cluster, allocation);
    sched_update_placement(sched, allocation);
}

/*
 * Only the jobs whose places are needed are preempted: all candidates are removed from the ledger, the
 * incoming jobs are placed, and candidates that still fit where they were stay. The ledger is unchanged at
 * the end.
 */
static size_t keep_the_unneeded(
    struct sched *sched, struct sched_run **out, size_t n_out, const struct contender *in, size_t n_in)
{
    struct cluster *cluster = &sched->cluster;
    _cleanup_free_ struct allocation *placed = xcalloc(n_in + 1, sizeof(*placed));
    size_t n_dirty = cluster->n_dirty, n_needed = 0;
    for (size_t i = 0; i < n_out; i++)
        take_out(sched, &out[i]->allocation);
    for (size_t i = 0; i < n_in; i++) {
        uint64_t reservations[16];
        struct fit fit;
        sched_fit_of(sched, in[i].job->class, reservations, 16, &fit);
        if (placement_choose(sched->settings.placement, sched->placement_state, cluster,
                &in[i].job->class->key.request, &fit, &placed[i], &sched->counts.index_work))
            put_in(sched, &placed[i]);
    }
    _cleanup_free_ bool *is_needed = xcalloc(n_out + 1, sizeof(*is_needed));
    for (size_t i = 0; i < n_out; i++) {
        is_needed[i] = !is_free_for(cluster, &out[i]->allocation);
        if (!is_needed[i])
            put_in(sched, &out[i]->allocation);
    }
    for (size_t i = 0; i < n_in; i++) {
        take_out(sched, &placed[i]);
        allocation_clear(&placed[i]);
    }
    for (size_t i = 0; i < n_out; i++) {
        if (!is_needed[i])
            continue;
        put_in(sched, &out[i]->allocation);
        out[n_needed++] = out[i];
    }
    cluster->n_dirty = n_dirty;
    return n_needed;
}

static void start_elements(struct sched *sched, const struct contender *one)
{
    for (uint32_t k = 0; k < one->elements && one->job->entry.class != NULL; k++)
        if (!start_if_it_fits(sched, one->job))
            break;
}

/* In order of rank, every job that fits into the remaining resources. */
static void start_the_rest(struct sched *sched)
{
    struct contender *all;
    size_t count = collect(sched, &all);
    for (size_t i = 0; i < count; i++)
        if (all[i].job->run == NULL)
            start_elements(sched, &all[i]);
    free(all);
}

void sched_pass_preemptive(struct sched *sched)
{
    struct contender *all;
    size_t count = collect(sched, &all), n_out = 0;
    uint64_t left = capacity(&sched->cluster);
    struct sched_run **out = xcalloc(count + 1, sizeof(struct sched_run *));
    struct contender *in = xcalloc(count + 1, sizeof(*in));
    size_t n_in = 0;
    for (size_t i = 0; i < count; i++) // jobs that must stay count first
        left -= !all[i].is_kept ? 0 : all[i].gpu_milli < left ? all[i].gpu_milli : left;
    for (size_t i = 0; i < count; i++) {
        if (all[i].is_kept)
            continue;
        uint32_t room = count_in(sched, &all[i], left);
        left -= room * all[i].gpu_milli;
        all[i].elements = room;
        if (room > 0 && all[i].job->run == NULL)
            in[n_in++] = all[i];
        else if (room == 0 && all[i].job->run != NULL)
            out[n_out++] = all[i].job->run;
    }
    sched->counts.examined += count;
    uint64_t n_over = sched->n_over;
    if (!sched->settings.counts_gpus_only && n_out > 0)
        n_out = keep_the_unneeded(sched, out, n_out, in, n_in);
    for (size_t i = 0; i < n_out; i++)
        sched_give_way(sched, out[i], "jobs ahead of it need its GPUs");
    for (size_t i = 0; i < n_in; i++)
        start_elements(sched, &in[i]);
    if (!sched->settings.counts_gpus_only)
        start_the_rest(sched); // a job that was not placed leaves its GPUs to later ones
    sched->n_over = n_over;    // they were counted with
    free(in);
    free(out);
    free(all);
}
