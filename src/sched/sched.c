/* SPDX-License-Identifier: MIT */
/* The scheduler's interface: reports about jobs, and its callbacks. */
#include "sched/sched.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define HISTORY_CELLS 100000U
#define DEPTH_MAX     1000U // of a chain of dependencies

static void advance(struct sched *sched, int64_t now_ms)
{
    if (now_ms > sched->now_ms)
        sched->now_ms = now_ms;
}

void sched_settings_init(struct sched_settings *settings)
{
    *settings = (struct sched_settings){
        .policy = &policy_default,
        .placement = &placement_fgd,
        .reservations = 1, // more delays short jobs, and increased waits in all traces examined
        .half_life_ms = INT64_C(7) * 24 * 3600 * 1000,
        .age_cap_ms = INT64_C(60) * 24 * 3600 * 1000,
        .default_run_ms = 3600 * 1000,
        .unused_ms = 30 * 60 * 1000,
        .preempt_grace_ms = 30 * 1000,
        .preempt_cost_ms = 40 * 1000,
        .preempt_cost_wide_ms = 60 * 1000,
        .quantum_ms = 60 * 1000,
        .parking = PARKING_ASKED,
        .park_bound = 4,
        .park_ratio = 2,
        .park_layers = 2,
        .park_margin = 20,
    };
}

struct sched *sched_new(const struct sched_settings *settings, const struct sched_callbacks *callbacks)
{
    struct sched *sched = xcalloc(1, sizeof(*sched));
    sched->settings = *settings;
    sched->callbacks = *callbacks;
    cluster_init(&sched->cluster);
    cluster_init(&sched->known);
    cluster_limit_jobs(&sched->cluster, settings->node_jobs);
    cluster_limit_starts(&sched->cluster, settings->node_starts);
    queue_init(&sched->queue);
    fairshare_init(&sched->fairshare, (double)settings->half_life_ms);
    sched->fairshare.user_limits = settings->user_limits;
    sched->fairshare.group_limits = settings->group_limits;
    sched->history = history_new(HISTORY_CELLS, settings->default_run_ms);
    if (settings->placement->open != NULL)
        sched->placement_state = settings->placement->open();
    return sched;
}

void sched_free(struct sched *sched)
{
    if (sched == NULL)
        return;
    for (size_t i = 0; i < sched->n_runs; i++) {
        allocation_clear(&sched->runs[i]->allocation);
        free(sched->runs[i]);
    }
    free(sched->runs);
    for (size_t i = 0; i < sched->n_nodes; i++) {
        free(sched->nodes[i].runs);
        free(sched->nodes[i].holds);
    }
    free(sched->nodes);
    free(sched->parked);
    free(sched->late);
    timers_free(&sched->timers);
    timers_free(&sched->ends);
    sched_depend_clear(sched);
    map_clear(&sched->jobs, sched_job_free);
    sched_plan_free(sched->holds, sched->n_holds);
    sched_calendar_clear(sched);
    if (sched->settings.placement->close != NULL)
        sched->settings.placement->close(sched->placement_state);
    queue_clear(&sched->queue);
    fairshare_clear(&sched->fairshare);
    cluster_clear(&sched->cluster);
    cluster_clear(&sched->known);
    if (!sched->is_fork)
        history_free(sched->history);
    free(sched);
}

static void change_placement(struct sched *sched, const struct placement *placement)
{
    if (sched->settings.placement->close != NULL)
        sched->settings.placement->close(sched->placement_state);
    sched->placement_state = placement->open != NULL ? placement->open() : NULL;
}

void sched_configure(struct sched *sched, int64_t now_ms, const struct sched_settings *settings)
{
    advance(sched, now_ms);
    if (settings->placement != sched->settings.placement)
        change_placement(sched, settings->placement);
    sched_plan_drop(sched); // a policy without backfill would keep another policy's plan forever
    sched->settings = *settings;
    cluster_limit_jobs(&sched->cluster, settings->node_jobs);
    cluster_limit_starts(&sched->cluster, settings->node_starts);
    sched->fairshare.user_limits = settings->user_limits;
    sched->fairshare.group_limits = settings->group_limits;
    for (struct account *account = sched->fairshare.first; account != NULL; account = account->next)
        account->limits = fairshare_default_limits(&sched->fairshare, account->kind);
    fairshare_settle(&sched->fairshare, sched->now_ms, (double)settings->half_life_ms);
    sched_unpark_all(sched);
    sched_parked_reckon(sched);
    for (size_t i = 0; i < sched->n_runs; i++)
        sched_run_expect(sched, sched->runs[i]);
    for (uint32_t node = 0; node < sched->cluster.n_nodes; node++)
        sched_node_late(sched, node);
    sched_rerank_all(sched);
    sched->is_dirty = true;
}

void sched_set_partitions(
    struct sched *sched, int64_t now_ms, const struct cluster_partition *partitions, size_t count)
{
    advance(sched, now_ms);
    cluster_set_partitions(&sched->cluster, partitions, count);
    cluster_set_partitions(&sched->known, partitions, count);
    sched_place_classes(sched);
    sched_rerank_all(sched);
    sched->is_dirty = true;
}

const struct sched_settings *sched_settings(const struct sched *sched)
{
    return &sched->settings;
}

struct cluster *sched_cluster(struct sched *sched)
{
    return &sched->cluster;
}

struct cluster *sched_known(struct sched *sched)
{
    return &sched->known;
}

struct fairshare *sched_fairshare(struct sched *sched)
{
    return &sched->fairshare;
}

struct history *sched_history(struct sched *sched)
{
    return sched->history;
}

const struct queue *sched_queue(const struct sched *sched)
{
    return &sched->queue;
}

const struct sched_counts *sched_counts(const struct sched *sched)
{
    return &sched->counts;
}

/* --- reports to the scheduler --- */

/* The job would wait for itself, through others. */
static bool leads_to(const struct sched *sched, uint64_t from, uint64_t to, unsigned depth)
{
    const struct sched_job *job = sched_find(sched, from);
    if (from == to)
        return true;
    for (size_t i = 0; depth > 0 && job != NULL && job->rules != NULL && i < job->rules->n_after; i++)
        if (leads_to(sched, job->rules->after[i].job, to, depth - 1))
            return true;
    return false;
}

/* Nodes that run jobs are there before they report after a restart: until then they have what they had. If
 * that is not known of one, anything may be possible there. */
static bool are_remembered(const struct sched *sched)
{
    bool has_any = false;
    for (size_t i = 0; i < sched->cluster.n_nodes; i++) {
        const struct cluster_node *node = &sched->cluster.nodes[i];
        const struct cluster_node *before =
            node->is_described ? NULL : cluster_find(&sched->known, node->name);
        if (!node->is_described && (before == NULL || !before->is_described))
            return false;
        has_any |= !node->is_described;
    }
    return has_any;
}

int sched_check(const struct sched *sched, const struct sched_job_spec *spec, struct error *err)
{
    for (size_t i = 0; i < spec->n_after; i++) {
        uint64_t named = spec->after[i].job;
        bool has_begun = spec->after[i].due_ms != 0; // it may have ended since
        if (!has_begun && sched_find(sched, named) == NULL)
            return error_set(
                err, -ENOENT, "it depends on job %llu, which does not exist", (unsigned long long)named);
        if (named == spec->id)
            return error_set(err, -ELOOP, "job %llu cannot depend on itself", (unsigned long long)named);
        if (spec->id != 0 && leads_to(sched, named, spec->id, DEPTH_MAX))
            return error_set(err, -ELOOP, "job %llu depends on job %llu, which would depend on it",
                (unsigned long long)named, (unsigned long long)spec->id);
    }
    int32_t tier = 0;
    struct sched_request request = spec->key.request; // borrowed
    request.partitions = cluster_partition_bits(&sched->cluster, request.partition, &tier);
    int r = cluster_check(are_remembered(sched) ? &sched->known : &sched->cluster, &request, err);
    if (r < 0 && sched->known.n_nodes > 0)
        r = cluster_check(&sched->known, &request, err);
    if (r < 0)
        return r;
    /* A limit set after the submit keeps the job waiting, but permits changes that request no more. */
    const struct sched_job *before = sched_find(sched, spec->id);
    bool asks_more = before == NULL || request_gpu_milli(&sched->cluster, &spec->key.request) >
                                           request_gpu_milli(&sched->cluster, &before->class->key.request);
    return asks_more ? sched_check_limits(sched, &spec->key, err) : 0;
}

void sched_submit(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_add_job(sched, spec);
    if (sched->settings.placement->learn != NULL)
        sched->settings.placement->learn(sched->placement_state, &sched->cluster, &spec->key.request,
            spec->is_array ? (double)spec->elements : 1);
    sched_set_job_timer(sched, job);
    sched_place_in_queue(sched, job);
}

void sched_withdraw(struct sched *sched, int64_t now_ms, uint64_t id)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, id);
    if (job == NULL || job->run != NULL)
        return;
    struct job_rules *rules = job->rules;
    uint64_t array = rules != NULL ? rules->array : 0;
    if (rules != NULL && rules->is_array && rules->elements_open > 0) {
        rules->elements = 0;
        sched_place_in_queue(sched, job);
        return;
    }
    sched_remove_job(sched, job);
    if (array != 0)
        sched_element_over(sched, array);
}

void sched_block(
    struct sched *sched, int64_t now_ms, uint64_t id, uint32_t set, uint32_t clear, int64_t until_ms)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, id);
    if (job == NULL)
        return;
    job->blockers = (job->blockers & ~clear) | set;
    if ((set & BLOCK_BACKOFF) != 0)
        sched_rules(job)->backoff_ms = until_ms;
    sched_parked_changed(sched, job);
    sched_set_job_timer(sched, job);
    sched_place_in_queue(sched, job);
}

void sched_edit(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, spec->id);
    if (job == NULL || job->run != NULL)
        return;
    sched_leave_queue(sched, job);
    job->entry.submit_ms = spec->submit_ms;
    sched_depend_no_more(sched, job);
    sched_parked_join(sched, job, &spec->key);
    sched_take_rules(job, spec);
    job->blockers = (job->blockers & BLOCK_BACKOFF) | spec->hold;
    sched_parked_changed(sched, job);
    sched_depend(sched, job);
    sched_set_job_timer(sched, job);
    sched_place_in_queue(sched, job);
    if (spec->is_array) // its limit may be another one
        sched_array_freed(sched, job);
    sched->is_dirty = true;
}

void sched_relimit(struct sched *sched, int64_t now_ms, uint64_t id, int64_t limit_ms)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, id);
    if (job == NULL || job->run == NULL)
        return;
    if (sched->n_parked > 0) // it may not be able to return what is owed
        sched->are_debts_in_question = sched->is_dirty = true;
    if (job->class->key.limit_ms == limit_ms)
        return;
    struct sched_job old = *job;
    struct class_key key = job->class->key;
    key.limit_ms = limit_ms;
    sched_join_class(sched, job, &key);
    sched_leave_class(sched, &old);
    sched_run_expect(sched, job->run);
    sched->is_dirty = true;
}

void sched_resume(struct sched *sched, int64_t now_ms, const struct sched_job_spec *spec,
    const struct allocation *allocation, int64_t started_ms)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_add_job(sched, spec);
    sched_run_begin(sched, job, allocation, started_ms);
    job->run->is_giving_way = job->run->is_being_parked = spec->is_being_parked;
    job->run->guest = spec->guest;
}

void sched_begin(
    struct sched *sched, int64_t now_ms, uint64_t id, const struct allocation *allocation, int64_t started_ms)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, id);
    if (job == NULL || job->run != NULL)
        return;
    sched_leave_queue(sched, job);
    job->blockers &= ~(uint32_t)BLOCK_HELD_USER;
    sched_run_begin(sched, job, allocation, started_ms);
    sched->is_dirty = true;
}

void sched_started(struct sched *sched, int64_t now_ms, uint64_t id)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, id);
    if (job == NULL || job->run == NULL || job->run->started_ms != 0)
        return;
    job->run->started_ms = sched->now_ms;
    sched_run_start_over(sched, job->run);
    sched_run_expect(sched, job->run);
    sched_began(sched, now_ms, id, sched->now_ms);
}

void sched_idle(struct sched *sched, int64_t now_ms, uint64_t id, bool is_idle)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, id);
    struct sched_run *run = job != NULL ? job->run : NULL;
    if (run == NULL || run->is_idle == is_idle)
        return;
    sched->n_preemptible -= sched_run_yields(run);
    run->is_idle = is_idle;
    sched->n_preemptible += sched_run_yields(run);
    /* Blocked jobs may fit now: marks its nodes as changed for them. */
    for (size_t i = 0; is_idle && i < run->allocation.n_nodes; i++)
        cluster_touch(&sched->cluster, &sched->cluster.nodes[run->allocation.nodes[i].node]);
    sched->is_dirty |= is_idle;
}

static void learn(struct sched *sched, const struct sched_job *job, unsigned stage, int64_t run_ms)
{
    struct history_key key;
    sched_history_key(sched, &job->class->key, &key);
    history_add(sched->history, &key, stage, run_ms);
    sched_rank_near(sched, job->class);
}

void sched_ended(struct sched *sched, int64_t now_ms, uint64_t id, int64_t run_ms)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, id);
    if (job == NULL || job->run == NULL)
        return;
    uint64_t array = job->rules != NULL ? job->rules->array : 0;
    unsigned stage = job->run->stage;
    sched_run_over(sched, job);
    if (run_ms >= 0 && !sched->is_fork)
        learn(sched, job, stage, run_ms);
    sched_remove_job(sched, job);
    sched_element_stops(sched, array);
    sched_element_over(sched, array);
}

/* Moves it to the class of jobs that reached the same stage, so that its minimum run time is known even if it
 * starts again. */
static void move_class(struct sched *sched, struct sched_job *job)
{
    struct sched_job old = *job;
    if (job->class->key.stage == job->rules->stage)
        return;
    sched_join_class(sched, job, &old.class->key);
    sched_leave_class(sched, &old);
}

void sched_stopped(struct sched *sched, int64_t now_ms, uint64_t id, int64_t done_ms)
{
    advance(sched, now_ms);
    struct sched_job *job = sched_find(sched, id);
    if (job != NULL && job->run == NULL && job->rules != NULL && job->rules->parked != NULL) {
        sched_leave_queue(sched, job);
        sched_parked_forget(sched, job); // it begins from the beginning
        job->rules->done_ms = 0;
        sched_place_in_queue(sched, job);
    }
    if (job == NULL || job->run == NULL)
        return;
    unsigned stage = job->run->stage;
    bool is_work_lost = job->run->is_giving_way && done_ms == 0;
    sched_run_over(sched, job);
    sched_parked_forget(sched, job); // it begins from the beginning
    if (is_work_lost)
        sched_rules(job)->preemptions++;
    if (done_ms != 0 || stage > 0 || job->rules != NULL) {
        sched_rules(job)->done_ms = done_ms;
        sched_rules(job)->stage = stage;
        move_class(sched, job);
    }
    if (job->rules != NULL)
        sched_element_stops(sched, job->rules->array);
    sched_place_in_queue(sched, job);
}

/* --- queries --- */

uint64_t sched_place(const struct sched *sched, uint64_t id)
{
    const struct sched_job *job = sched_find(sched, id);
    return job != NULL && job->run == NULL ? sched_position(sched, job) : 0;
}

int64_t sched_likely_ms(const struct sched *sched, uint64_t id)
{
    struct estimate estimate;
    sched_class_estimate(sched, &sched_find(sched, id)->class->key, 0, ESTIMATE_LIKELY, &estimate);
    return estimate.likely_ms;
}

int64_t sched_expected_end(const struct sched *sched, uint64_t id, int64_t now_ms, int64_t start_ms)
{
    const struct sched_job *job = sched_find(sched, id);
    if (job == NULL || (job->run == NULL && start_ms == TIME_NEVER))
        return TIME_NEVER;
    if (job->run != NULL)
        return job->run->expected_end_ms > now_ms ? job->run->expected_end_ms : now_ms + 1;
    return start_ms + sched_likely_ms(sched, id);
}

bool sched_job_status(const struct sched *sched, uint64_t id, int64_t now_ms, struct sched_job_status *ret)
{
    const struct sched_job *job = sched_find(sched, id);
    *ret = (struct sched_job_status){ .expected_end_ms = TIME_NEVER, .shadow_ms = TIME_NEVER };
    if (job == NULL)
        return false;
    ret->blockers = job->blockers;
    ret->key = &job->class->key;
    if (job->rules != NULL) {
        ret->begin_ms = job->rules->begin_ms;
        ret->deadline_ms = job->rules->deadline_ms;
        ret->backoff_ms = (job->blockers & BLOCK_BACKOFF) != 0 ? job->rules->backoff_ms : 0;
        /* Timers that are due, and have not been run. */
        if (ret->begin_ms <= now_ms)
            ret->blockers &= ~(uint32_t)BLOCK_BEGIN;
        if (ret->backoff_ms <= now_ms)
            ret->blockers &= ~(uint32_t)BLOCK_BACKOFF;
        if (sched_depend_is_due(job->rules, now_ms))
            ret->blockers &= ~(uint32_t)BLOCK_DEPENDENCY;
    }
    const struct sched_run *run = job->run;
    ret->is_running = run != NULL;
    if (run != NULL) {
        ret->allocation = &run->allocation;
        ret->expected_end_ms = run->expected_end_ms > now_ms ? run->expected_end_ms : now_ms + 1;
        return true;
    }
    ret->position = sched_position(sched, job);
    for (size_t i = 0; i < sched->n_holds; i++)
        if (sched->holds[i].class == job->entry.class && job->class->first == &job->entry)
            ret->shadow_ms = sched->holds[i].from_ms;
    return true;
}

int sched_invariant(const struct sched *sched, struct error *err)
{
    int r = cluster_invariant(&sched->cluster, err);
    if (r == 0)
        r = queue_invariant(&sched->queue, err);
    for (size_t i = 0; r == 0 && i < sched->n_runs; i++)
        if (sched->runs[i]->place != i || sched->runs[i]->job->run != sched->runs[i])
            r = error_set(err, -EBADMSG, "run %zu is at the wrong index", i);
    return r == 0 ? sched_parked_invariant(sched, err) : r;
}
