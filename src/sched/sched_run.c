/* SPDX-License-Identifier: MIT */
/*
 * Running jobs: their allocations, their expected ends, and when those will free the GPUs of a node. The
 * estimate for a job that exceeds it is corrected upwards, based on jobs that ran as long; otherwise
 * reservations based on it would slip again and again (Tsafrir, Etsion and Feitelson, TPDS 2007). The
 * progress of a job is evidence about those submitted with it: the history is updated at each stage.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define OVER_LIMIT_MS INT64_C(10000)
#define STARTS_MS     INT64_C(30000) // a job that has not started then is blocked: others need not wait for it
#define EXPECT_MAX_MS (INT64_C(10) * 365 * 24 * 3600 * 1000)

struct node_runs *sched_node_runs(struct sched *sched, uint32_t node)
{
    if (node >= sched->n_nodes) {
        size_t count = sched->cluster.n_nodes > node ? sched->cluster.n_nodes : (size_t)node + 1;
        sched->nodes = xreallocarray(sched->nodes, count, sizeof(*sched->nodes));
        for (size_t i = sched->n_nodes; i < count; i++)
            sched->nodes[i] = (struct node_runs){ 0 };
        sched->n_nodes = count;
    }
    return &sched->nodes[node];
}

void sched_node_free_times(const struct sched *sched, uint32_t node, int64_t *free_ms)
{
    const struct cluster_node *where = &sched->cluster.nodes[node];
    for (size_t i = 0; i < where->n_gpus; i++)
        free_ms[i] = cluster_gpu_is_open(where, &where->gpus[i]) ? 0 : TIME_NEVER;
    if (node >= sched->n_nodes)
        return;
    const struct node_runs *runs = &sched->nodes[node];
    for (size_t i = 0; i < runs->count; i++) {
        const struct sched_run *run = runs->runs[i];
        for (size_t k = 0; k < run->allocation.n_gpus; k++) {
            const struct alloc_gpu *gpu = &run->allocation.gpus[k];
            if (gpu->node == node && free_ms[gpu->gpu] < run->expected_end_ms)
                free_ms[gpu->gpu] = run->expected_end_ms;
        }
    }
}

/* Inserts into the ascending list of the soonest ones. */
static void insert_time(int64_t times[INDEX_TIMES], int64_t at_ms)
{
    size_t k = INDEX_TIMES;
    for (; k > 0 && times[k - 1] > at_ms; k--)
        if (k < INDEX_TIMES)
            times[k] = times[k - 1];
    if (k < INDEX_TIMES)
        times[k] = at_ms;
}

static void update_times(struct sched *sched, uint32_t node)
{
    int64_t free_ms[NODE_GPUS_LIMIT], times[INDEX_TIMES];
    size_t n_gpus = sched->cluster.nodes[node].n_gpus;
    sched_node_free_times(sched, node, free_ms);
    for (size_t k = 0; k < INDEX_TIMES; k++)
        times[k] = TIME_NEVER;
    for (size_t i = 0; i < n_gpus; i++)
        insert_time(times, free_ms[i]);
    node_index_set_times(sched->cluster.index, node, times);
}

void sched_node_late(struct sched *sched, uint32_t node)
{
    struct node_runs *runs = sched_node_runs(sched, node);
    if (runs->is_late)
        return;
    runs->is_late = true;
    if (sched->n_late == sched->late_capacity) {
        sched->late_capacity = sched->late_capacity > 0 ? sched->late_capacity * 2 : 16;
        sched->late = xreallocarray(sched->late, sched->late_capacity, sizeof(*sched->late));
    }
    sched->late[sched->n_late++] = node;
}

void sched_update_times(struct sched *sched)
{
    for (size_t i = 0; i < sched->n_late; i++) {
        sched->nodes[sched->late[i]].is_late = false;
        update_times(sched, sched->late[i]);
    }
    sched->n_late = 0;
}

static void add_to_nodes(struct sched *sched, struct sched_run *run)
{
    for (size_t i = 0; i < run->allocation.n_nodes; i++) {
        struct node_runs *runs = sched_node_runs(sched, run->allocation.nodes[i].node);
        if (runs->count == runs->capacity) {
            runs->capacity = runs->capacity > 0 ? runs->capacity * 2 : 4;
            runs->runs = xreallocarray(runs->runs, runs->capacity, sizeof(struct sched_run *));
        }
        runs->runs[runs->count++] = run;
        sched_node_late(sched, run->allocation.nodes[i].node);
    }
}

static void remove_from_nodes(struct sched *sched, const struct sched_run *run)
{
    for (size_t i = 0; i < run->allocation.n_nodes; i++) {
        struct node_runs *runs = sched_node_runs(sched, run->allocation.nodes[i].node);
        size_t at = 0;
        while (runs->runs[at] != run)
            at++;
        runs->runs[at] = runs->runs[--runs->count];
        sched_node_late(sched, run->allocation.nodes[i].node);
    }
}

int64_t sched_run_elapsed(const struct sched_run *run, int64_t now_ms)
{
    int64_t since = run->started_ms != 0 ? run->started_ms : run->allocated_ms;
    int64_t done = run->job->rules != NULL ? run->job->rules->done_ms : 0;
    return (now_ms > since ? now_ms - since : 0) + done;
}

static int64_t sched_run_known(const struct sched_run *run, int64_t now_ms)
{
    int64_t elapsed = sched_run_elapsed(run, now_ms), stage_ms = history_stage_ms(run->stage);
    return elapsed > stage_ms ? elapsed : stage_ms;
}

/* When it reaches the next stage reported to its burst. */
static int64_t next_stage(const struct sched *sched, const struct sched_run *run, int64_t elapsed_ms)
{
    if (sched->is_fork || run->job->class->key.burst == 0)
        return TIME_NEVER;
    int64_t at = history_next_stage_ms(sched_run_known(run, sched->now_ms));
    return at == INT64_MAX ? TIME_NEVER : sched->now_ms + (at - elapsed_ms);
}

/* The certain end: its limit, or so late that nothing waits for it. */
static int64_t certain_end(const struct sched *sched, const struct sched_run *run)
{
    int64_t limit_ms = run->job->class->key.limit_ms;
    int64_t since_ms = run->started_ms != 0 ? run->started_ms : run->allocated_ms;
    return limit_ms > 0 ? since_ms + limit_ms : sched->now_ms + EXPECT_MAX_MS;
}

/* In a forecast it ends as assumed, so it never exceeds the estimate. */
static void assume_end(struct sched *sched, struct sched_run *run)
{
    bool is_certain = sched->assumed_ends == ENDS_CERTAIN, has_limit = run->job->class->key.limit_ms > 0;
    if (is_certain)
        run->expected_end_ms = certain_end(sched, run);
    int64_t end_ms = is_certain && !has_limit ? TIME_NEVER : run->expected_end_ms;
    timers_set(&sched->ends, end_ms, TIMER_RUN, run, &run->end_timer);
}

void sched_assume_ends(struct sched *sched, enum assumed_ends ends)
{
    sched->assumed_ends = ends;
    for (size_t i = 0; i < sched->n_runs; i++) {
        struct sched_run *run = sched->runs[i];
        if (sched->settings.policy->preempting == PREEMPT_NONE)
            timers_set(&sched->timers, TIME_NEVER, TIMER_RUN, run, &run->timer);
        assume_end(sched, run);
        for (size_t k = 0; k < run->allocation.n_nodes && ends == ENDS_CERTAIN; k++)
            sched_node_late(sched, run->allocation.nodes[k].node);
    }
}

uint64_t sched_next_end(const struct sched *sched, int64_t *ret_end_ms)
{
    const struct sched_run *run = timers_first(&sched->ends);
    *ret_end_ms = timers_next(&sched->ends);
    return run != NULL ? run->job->entry.job : 0;
}

static bool is_end_certain(const struct sched *sched)
{
    return sched->assumed_ends == ENDS_CERTAIN && sched->settings.policy->preempting == PREEMPT_NONE;
}

/* Also arms the timer for the time at which it exceeds the estimate. */
static void estimate_end(struct sched *sched, struct sched_run *run)
{
    const struct class_key *key = &run->job->class->key;
    int64_t elapsed = sched_run_elapsed(run, sched->now_ms);
    struct estimate estimate;
    bool is_learnt = sched->settings.policy->preempting == PREEMPT_LEARNT;
    sched_class_estimate(sched, key, sched_run_known(run, sched->now_ms),
        ESTIMATE_LIKELY | (is_learnt ? ESTIMATE_INDEX : 0), &estimate);
    int64_t total = estimate.likely_ms;
    run->index_ms = estimate.index_ms;
    if (total <= elapsed) // at its limit and being ended: checked again soon, but not continuously
        total = elapsed + OVER_LIMIT_MS;
    if (total - elapsed > EXPECT_MAX_MS)
        total = elapsed + EXPECT_MAX_MS;
    run->expected_end_ms = sched->now_ms + (total - elapsed);
    int64_t at = sched->settings.policy->backfill >= BACKFILL_EASY ? run->expected_end_ms : TIME_NEVER;
    if (sched->assumed_ends != ENDS_UNKNOWN)
        at = TIME_NEVER;
    if (sched->settings.policy->preempting != PREEMPT_NONE)
        at = sched_preemptive_change(sched, run);
    if (sched_parks(sched)) {
        int64_t host_at = sched_guest_change(sched, run);
        at = host_at < at ? host_at : at;
    }
    int64_t stage_at = next_stage(sched, run, elapsed);
    at = stage_at < at ? stage_at : at;
    timers_set(&sched->timers, at, TIMER_RUN, run, &run->timer);
}

static void expect(struct sched *sched, struct sched_run *run)
{
    if (!is_end_certain(sched))
        estimate_end(sched, run);
    if (sched->assumed_ends != ENDS_UNKNOWN)
        assume_end(sched, run);
}

static void update_burst(struct sched *sched, struct sched_run *run)
{
    struct queue_class *class = run->job->class;
    unsigned stage = history_stage(sched_run_elapsed(run, sched->now_ms));
    if (sched->is_fork || class->key.burst == 0 || stage <= run->stage)
        return;
    history_survived(sched->history, class->key.burst, run->stage, stage);
    run->stage = stage;
    sched_rank_near(sched, class);
}

void sched_run_expect(struct sched *sched, struct sched_run *run)
{
    update_burst(sched, run);
    expect(sched, run);
    for (size_t i = 0; i < run->allocation.n_nodes; i++)
        sched_node_late(sched, run->allocation.nodes[i].node);
    sched->is_dirty |=
        sched->n_holds > 0 || sched->settings.policy->preempting != PREEMPT_NONE || sched_parks(sched);
}

/* The charge to its accounts: whole GPUs, fractions, and for memory alone its part of the GPU's memory. */
static int64_t charge_of(const struct sched *sched, const struct allocation *allocation)
{
    int64_t milli = 0;
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        const struct alloc_gpu *gpu = &allocation->gpus[i];
        uint64_t memory = sched->cluster.nodes[gpu->node].gpus[gpu->gpu].memory_bytes;
        if (gpu->slot == 0 || (gpu->share == 0 && memory == 0)) // after a restart its node may be unknown yet
            milli += SHARE_WHOLE;
        else if (gpu->share > 0)
            milli += gpu->share;
        else
            milli += (int64_t)(gpu->memory / (memory / SHARE_WHOLE + 1));
    }
    return milli;
}

/* The largest part of a resource of the cluster that it takes, as thousandths of GPUs; a cluster without GPUs
 * counts as one that has one for each node. */
static int64_t dominant_of(const struct sched *sched, const struct allocation *allocation, int64_t gpu_milli)
{
    const struct cluster_totals *all = &sched->cluster.totals;
    double gpus = all->gpus > 0 ? all->gpus : (double)sched->cluster.n_nodes, cpu = 0, memory = 0;
    for (size_t i = 0; i < allocation->n_nodes; i++) {
        cpu += allocation->nodes[i].cpu_milli;
        memory += (double)allocation->nodes[i].memory;
    }
    double part = all->cpu_milli > 0 ? cpu / all->cpu_milli : 0;
    if (all->memory > 0 && memory / all->memory > part)
        part = memory / all->memory;
    part = part < 1 ? part : 1;
    int64_t host_milli = (int64_t)(part * gpus * SHARE_WHOLE);
    return host_milli > gpu_milli ? host_milli : gpu_milli;
}

static void charge(struct sched *sched, struct sched_run *run, bool is_over)
{
    struct account *accounts[] = { run->job->class->account, run->job->class->group };
    for (size_t i = 0; i < 2; i++) {
        fairshare_count(&sched->fairshare, accounts[i], sched->now_ms, is_over ? -1 : 1, 0);
        fairshare_charge(&sched->fairshare, accounts[i], sched->now_ms,
            is_over ? -run->gpu_milli : run->gpu_milli, is_over ? -run->charged_milli : run->charged_milli);
        if (is_over)
            sched_unpark(sched, accounts[i]);
    }
    if (accounts[0]->running == (is_over ? 0 : 1))
        sched_head_start_changed(sched, accounts[0], is_over);
}

void sched_update_placement(struct sched *sched, const struct allocation *allocation)
{
    const struct placement *placement = sched->settings.placement;
    for (size_t i = 0; placement->dirty != NULL && i < allocation->n_nodes; i++)
        placement->dirty(sched->placement_state, &sched->cluster, allocation->nodes[i].node);
}

static struct sched_run *add_run(
    struct sched *sched, struct sched_job *job, const struct allocation *allocation)
{
    struct sched_run *run = xcalloc(1, sizeof(*run));
    job->run = run;
    run->job = job;
    allocation_copy(&run->allocation, allocation);
    run->gpu_milli = charge_of(sched, allocation);
    run->charged_milli = dominant_of(sched, allocation, run->gpu_milli);
    if (sched->n_runs == sched->runs_capacity) {
        sched->runs_capacity = sched->runs_capacity > 0 ? sched->runs_capacity * 2 : 16;
        sched->runs = xreallocarray(sched->runs, sched->runs_capacity, sizeof(struct sched_run *));
    }
    run->place = sched->n_runs;
    sched->runs[sched->n_runs++] = run;
    sched->n_preemptible += job->class->key.is_preemptible;
    cluster_book(&sched->cluster, allocation);
    sched_update_placement(sched, allocation);
    add_to_nodes(sched, run);
    charge(sched, run, false);
    return run;
}

/* A node limits simultaneous starts of jobs without GPUs, because these can arrive by the thousand. */
static void count_start(struct sched *sched, struct sched_run *run)
{
    bool is_counted = run->started_ms == 0 && run->allocation.n_gpus == 0 && run->allocation.n_nodes == 1 &&
                      sched->settings.node_starts > 0 && !sched->is_fork;
    if (!is_counted)
        return;
    run->is_start_counted = true;
    cluster_start_begins(&sched->cluster.nodes[run->allocation.nodes[0].node]);
    timers_set(&sched->timers, sched->now_ms + STARTS_MS, TIMER_START, run, &run->start_timer);
}

void sched_run_start_over(struct sched *sched, struct sched_run *run)
{
    if (!run->is_start_counted)
        return;
    run->is_start_counted = false;
    timers_set(&sched->timers, TIME_NEVER, TIMER_START, run, &run->start_timer);
    cluster_start_ends(&sched->cluster, &sched->cluster.nodes[run->allocation.nodes[0].node]);
}

void sched_run_begin(
    struct sched *sched, struct sched_job *job, const struct allocation *allocation, int64_t started_ms)
{
    struct sched_run *run = add_run(sched, job, allocation);
    run->allocated_ms = started_ms != 0 ? started_ms : sched->now_ms;
    run->started_ms = started_ms;
    run->stage = job->rules != NULL ? job->rules->stage : 0;
    count_start(sched, run);
    sched_element_begins(sched, job);
    if (started_ms != 0)
        update_burst(sched, run);
    expect(sched, run);
    sched_reservation_used(sched, run);
}

void sched_run_copy(
    struct sched *sched, struct sched_job *job, const struct sched *from, const struct sched_run *original)
{
    struct sched_run *run = add_run(sched, job, &original->allocation);
    run->allocated_ms = original->allocated_ms;
    run->started_ms = original->started_ms;
    run->expected_end_ms = original->expected_end_ms;
    run->stage = original->stage;
    run->index_ms = original->index_ms;
    run->is_giving_way = original->is_giving_way;
    int64_t at_ms = timers_at(&from->timers, original->timer);
    timers_set(&sched->timers, at_ms, TIMER_RUN, run, &run->timer);
}

bool sched_run_yields(const struct sched_run *run)
{
    return run->is_idle || run->job->class->key.is_preemptible;
}

void sched_run_over(struct sched *sched, struct sched_job *job)
{
    struct sched_run *run = take_ptr(job->run);
    timers_set(&sched->timers, TIME_NEVER, TIMER_RUN, run, &run->timer);
    timers_set(&sched->ends, TIME_NEVER, TIMER_RUN, run, &run->end_timer);
    run->job = job;
    sched_run_start_over(sched, run);
    remove_from_nodes(sched, run);
    sched->runs[run->place] = sched->runs[--sched->n_runs];
    sched->runs[run->place]->place = run->place;
    sched->n_preemptible -= sched_run_yields(run);
    cluster_release(&sched->cluster, &run->allocation);
    sched_update_placement(sched, &run->allocation);
    charge(sched, run, true);
    sched_reservation_used(sched, run);
    if (job->rules != NULL || run->is_giving_way)
        sched_rules(job)->attained +=
            (double)run->gpu_milli / SHARE_WHOLE * (double)(sched->now_ms - run->allocated_ms);
    allocation_clear(&run->allocation);
    free(run);
    sched->is_dirty = true;
    sched->n_over++;
}
