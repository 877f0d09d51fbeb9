/* SPDX-License-Identifier: MIT */
/*
 * Jobs that the scheduler has parked for others, and the bound of their waits. A job that has run for R and
 * been parked for P, all in all, may be parked until P = park_bound * R. So that it is back by then:
 *
 *   - A job is owed as many GPUs as it left: those that it left or, where it may return to others, what these
 *     debts were moved to (sched_debts.c). The jobs that are owed a GPU return in the order of their bounds,
 *     each a slot before the next and before its bound: then it is due.
 *   - What starts on a GPU that is owed to a job has certainly ended when that is due, or can be parked
 * itself and has the GPU for a slot before (fit.c).
 *   - When a job is due it returns (sched_return.c), and what is on the GPUs that it is owed is parked, or
 *     preempted if it refuses. That has run for a slot at least, less what the change before took, so it may
 *     be parked for park_bound times as long. A GPU is owed to at most park_layers + 1 jobs, which is less,
 *     so all of them are in time.
 *
 * A change takes what parking and returning the widest job of one node costs, and twice as long as a
 * preemption, for one that refuses late. A slot is the quantum, or five changes: with a bound of 4 and 3 jobs
 * to which a GPU is owed, 4 * (5 - 1) changes are more than 3 slots and a change. All of this follows from
 * what is stored of jobs: how long each has run and been parked, since when, and what it left. A job that is
 * held by a user, and one whose node takes no jobs, is owed nothing meanwhile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define CHANGES_IN_SLOT 5
#define HELD            ((uint32_t)BLOCK_HELD_USER | (uint32_t)BLOCK_HELD_ADMIN)

bool sched_parks(const struct sched *sched)
{
    const struct policy *policy = sched->settings.policy;
    return sched->settings.parking == PARKING_AUTO && sched->callbacks.park != NULL &&
           policy->preempting == PREEMPT_NONE && policy->backfill != BACKFILL_NONE;
}

/* --- jobs that can be parked --- */

static bool may_park(const struct sched *sched, const struct sched_job *job)
{
    const struct class_key *key = &job->class->key;
    bool is_part = job->rules != NULL && (job->rules->is_array || job->rules->array != 0);
    if (is_part || key->is_preemptible || key->request.adopted_pid != 0 || key->request.is_exclusive ||
        (job->rules != NULL && job->rules->refuses_park))
        return false;
    return sched->callbacks.may_park == NULL ||
           sched->callbacks.may_park(sched->callbacks.arg, job->entry.job);
}

bool sched_run_can_park(const struct sched *sched, const struct sched_run *run)
{
    const struct allocation *held = &run->allocation;
    for (size_t i = 0; i < held->n_gpus; i++)
        if (held->gpus[i].slot != 0)
            return false;
    return held->n_nodes == 1 && held->n_gpus > 0 && may_park(sched, run->job);
}

static size_t widest_node(const struct sched *sched)
{
    size_t most = 0;
    for (size_t i = 0; i < sched->cluster.n_nodes; i++)
        most = sched->cluster.nodes[i].n_gpus > most ? sched->cluster.nodes[i].n_gpus : most;
    return most;
}

bool sched_run_ends_by(const struct sched *sched, const struct sched_run *run, int64_t limit_ms, int64_t ms)
{
    int64_t begin_ms = run->started_ms != 0 ? run->started_ms : sched->now_ms;
    return limit_ms > 0 && begin_ms + limit_ms <= ms;
}

bool sched_class_is_plain(const struct sched *sched, const struct queue_class *class)
{
    const struct sched_request *request = &class->key.request;
    return request->gpus > 0 && request->gpus <= widest_node(sched) && request->nodes <= 1 &&
           request->n_picks == 0 && !request_is_shared(request);
}

bool sched_class_can_park(const struct sched *sched, const struct queue_class *class)
{
    bool is_plain = class->first != NULL && sched_class_is_plain(sched, class);
    const struct sched_job *head = is_plain ? sched_find(sched, class->first->job) : NULL;
    return head != NULL && may_park(sched, head);
}

/* --- times --- */

int64_t sched_park_slot(const struct sched *sched)
{
    const struct sched_settings *settings = &sched->settings;
    int64_t cost_ms = settings->park_cost_ms > 0 ? settings->park_cost_ms
                                                 : sched_preempt_cost(settings, (uint32_t)widest_node(sched));
    int64_t change_ms = cost_ms + 2 * settings->preempt_grace_ms;
    return settings->quantum_ms > CHANGES_IN_SLOT * change_ms ? settings->quantum_ms
                                                              : CHANGES_IN_SLOT * change_ms;
}

/* For its current period on GPUs: how long it has run, and before that, how long it only held them. */
static void period_of(
    const struct sched *sched, const struct sched_run *run, int64_t *ret_ran_ms, int64_t *ret_waited_ms)
{
    bool is_begun = run->started_ms != 0;
    *ret_ran_ms = is_begun ? sched->now_ms - run->started_ms : 0;
    *ret_waited_ms = (is_begun ? run->started_ms : sched->now_ms) - run->allocated_ms;
}

int64_t sched_run_budget(const struct sched *sched, const struct sched_run *run)
{
    const struct job_rules *rules = run->job->rules;
    int64_t ran_ms, waited_ms;
    period_of(sched, run, &ran_ms, &waited_ms);
    ran_ms += rules != NULL ? rules->ran_ms : 0;
    waited_ms = rules != NULL && rules->ran_ms > 0 ? rules->waited_ms + waited_ms : 0;
    return ran_ms * sched->settings.park_bound - waited_ms;
}

int64_t sched_parked_bound(const struct sched *sched, const struct parked_job *parked)
{
    const struct job_rules *rules = parked->job->rules;
    return parked->since_ms + rules->ran_ms * sched->settings.park_bound - rules->waited_ms;
}

bool sched_parked_is_held(const struct parked_job *parked)
{
    return (parked->job->blockers & HELD) != 0;
}

int64_t sched_latest_return(const struct sched *sched, uint64_t id)
{
    const struct sched_job *job = sched_find(sched, id);
    bool is_parked = job != NULL && job->rules != NULL && job->rules->parked != NULL;
    return is_parked ? sched_parked_bound(sched, job->rules->parked) : TIME_NEVER;
}

void sched_parked_keep(struct sched *sched, struct parked_job *parked, bool is_kept)
{
    if (parked->is_kept == is_kept)
        return;
    parked->is_kept = is_kept;
    sched_debts_reckon(sched, parked->left.nodes[0].node);
}

/* When the next job is due or, if it has not returned because of that, the jobs on its GPUs have had them for
 * long enough. */
static void set_timer(struct sched *sched)
{
    int64_t next_ms = TIME_NEVER;
    for (size_t i = 0; i < sched->n_parked; i++) {
        const struct parked_job *parked = sched->parked[i];
        int64_t at_ms = parked->due_ms;
        if (at_ms <= sched->now_ms && parked->job->blockers == 0)
            at_ms = sched_return_waits_until(sched, parked);
        if (at_ms > sched->now_ms && at_ms < next_ms)
            next_ms = at_ms;
    }
    timers_set(&sched->timers, next_ms, TIMER_RETURN, sched, &sched->return_timer);
}

void sched_parked_reckon(struct sched *sched)
{
    for (uint32_t node = 0; sched->n_parked > 0 && node < sched->cluster.n_nodes; node++)
        sched_debts_reckon(sched, node);
    set_timer(sched);
}

/* --- the books --- */

/* Its processes, and their memory, are on that node. */
static struct allocation host_of(const struct allocation *left)
{
    return (struct allocation){ .nodes = left->nodes, .n_nodes = left->n_nodes };
}

static void count_aside(const struct parked_job *parked, int sign)
{
    const struct queue_class *class = parked->job->class;
    struct account *accounts[] = { class->account, class->group };
    for (size_t i = 0; i < 2; i++) {
        accounts[i]->aside += (uint32_t)sign;
        accounts[i]->aside_milli += (uint32_t)sign * (uint32_t)parked->left.n_gpus * SHARE_WHOLE;
    }
}

static void enter(struct sched *sched, struct parked_job *parked)
{
    sched->parked = xreallocarray(sched->parked, sched->n_parked + 1, sizeof(struct parked_job *));
    sched->parked[sched->n_parked++] = parked;
    sched_debts_reckon(sched, parked->left.nodes[0].node);
}

static void leave(struct sched *sched, const struct parked_job *parked)
{
    size_t at = 0;
    while (sched->parked[at] != parked)
        at++;
    sched->parked[at] = sched->parked[--sched->n_parked];
    sched_debts_reckon(sched, parked->left.nodes[0].node);
}

void sched_parked_put(struct sched *sched, struct parked_job *parked)
{
    struct allocation host = host_of(&parked->left);
    size_t n_dirty = sched->cluster.n_dirty;
    enter(sched, parked);
    cluster_book(&sched->cluster, &host);
    sched->cluster.n_dirty = n_dirty; // nothing has come free
    count_aside(parked, 1);
}

struct parked_job *sched_parked_lift(struct sched *sched, struct sched_job *job)
{
    struct parked_job *parked = job->rules != NULL ? job->rules->parked : NULL;
    if (parked == NULL)
        return NULL;
    struct allocation host = host_of(&parked->left);
    size_t n_dirty = sched->cluster.n_dirty;
    leave(sched, parked);
    cluster_release(&sched->cluster, &host);
    sched->cluster.n_dirty = n_dirty;
    count_aside(parked, -1);
    return parked;
}

static void discard(struct sched *sched, struct parked_job *parked)
{
    uint32_t node = parked->left.nodes[0].node;
    parked->job->rules->parked = NULL;
    allocation_clear(&parked->left);
    allocation_clear(&parked->owed);
    free(parked);
    cluster_touch(&sched->cluster, &sched->cluster.nodes[node]); // the GPUs owed to it may go to others
    set_timer(sched);
}

void sched_parked_began(struct sched *sched, struct parked_job *parked)
{
    parked->job->rules->waited_ms += sched->now_ms - parked->since_ms;
    discard(sched, parked);
}

void sched_parked_try(struct sched *sched, struct sched_run *run, struct parked_job *trial)
{
    struct job_rules *rules = sched_rules(run->job);
    int64_t budget_ms = sched_run_budget(sched, run);
    /* With this time, its bound is as if it were parked. */
    *trial = (struct parked_job){ .job = run->job,
        .left = run->allocation,
        .since_ms =
            sched->now_ms + budget_ms - (rules->ran_ms * sched->settings.park_bound - rules->waited_ms) };
    allocation_copy(&trial->owed, &run->allocation);
    struct allocation host = host_of(&run->allocation);
    cluster_release(&sched->cluster, &run->allocation);
    cluster_book(&sched->cluster, &host);
    enter(sched, trial);
}

void sched_parked_try_over(struct sched *sched, struct sched_run *run, struct parked_job *trial)
{
    struct allocation host = host_of(&run->allocation);
    leave(sched, trial);
    allocation_clear(&trial->owed);
    cluster_release(&sched->cluster, &host);
    cluster_book(&sched->cluster, &run->allocation);
}

void sched_parked_changed(struct sched *sched, struct sched_job *job)
{
    if (job->rules == NULL || job->rules->parked == NULL)
        return;
    const struct allocation *left = &job->rules->parked->left;
    sched_debts_reckon(sched, left->nodes[0].node);
    sched->are_debts_in_question = true; // of a job that is released
    cluster_touch(&sched->cluster, &sched->cluster.nodes[left->nodes[0].node]);
    set_timer(sched);
    sched->is_dirty = true;
}

/* --- the GPUs of its return --- */

static bool is_among(uint32_t index, const uint32_t *indexes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (indexes[i] == index)
            return true;
    return false;
}

static bool has_left(const struct parked_job *parked, uint32_t gpu)
{
    for (size_t i = 0; i < parked->left.n_gpus; i++)
        if (parked->left.gpus[i].gpu == gpu)
            return true;
    return false;
}

static bool is_one_kind(const struct cluster_node *node, const struct allocation *left)
{
    const struct cluster_gpu *own = &node->gpus[left->gpus[0].gpu];
    for (size_t i = 1; i < left->n_gpus; i++) {
        const struct cluster_gpu *gpu = &node->gpus[left->gpus[i].gpu];
        if (gpu->model != own->model || gpu->memory_bytes != own->memory_bytes)
            return false;
    }
    return true;
}

/* Of those that it may have: the GPUs equal to the ones that it left or, if these differ, those. */
static bool may_return_to(
    const struct cluster_node *node, const struct parked_job *parked, uint32_t at, bool is_of_one_kind)
{
    const struct job_rules *rules = parked->job->rules;
    const struct cluster_gpu *own = &node->gpus[parked->left.gpus[0].gpu], *gpu = &node->gpus[at];
    if (has_left(parked, at))
        return true;
    return is_of_one_kind && !node->returns_home && gpu->is_known && gpu->model == own->model &&
           gpu->memory_bytes == own->memory_bytes &&
           (rules->n_own_allow == 0 || is_among(gpu->index, rules->own_allow, rules->n_own_allow));
}

bool sched_parked_may_have(const struct sched *sched, const struct parked_job *parked, uint32_t gpu)
{
    const struct cluster_node *node = &sched->cluster.nodes[parked->left.nodes[0].node];
    return may_return_to(node, parked, gpu, is_one_kind(node, &parked->left));
}

static int compare_indexes(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static size_t list_gpus(const struct cluster_node *node, const struct parked_job *parked, uint32_t *ret)
{
    bool is_of_one_kind = is_one_kind(node, &parked->left);
    size_t count = 0;
    for (uint32_t i = 0; i < node->n_gpus; i++)
        if (may_return_to(node, parked, i, is_of_one_kind))
            ret[count++] = node->gpus[i].index;
    qsort(ret, count, sizeof(*ret), compare_indexes);
    return count;
}

/* Its request without the binding. */
static void keep_own(struct job_rules *rules, const struct sched_request *request)
{
    free(rules->own_nodelist);
    free(rules->own_allow);
    rules->is_bound = true;
    rules->own_nodelist = request->nodelist != NULL ? xstrdup(request->nodelist) : NULL;
    rules->own_allow = xcalloc(request->n_allow + 1, sizeof(*rules->own_allow));
    rules->n_own_allow = request->n_allow;
    for (size_t i = 0; i < request->n_allow; i++)
        rules->own_allow[i] = request->allow[i];
}

static void bind_key(const struct sched *sched, const struct parked_job *parked, struct class_key *key,
    uint32_t allow[NODE_GPUS_LIMIT])
{
    const struct cluster_node *node = &sched->cluster.nodes[parked->left.nodes[0].node];
    size_t count = list_gpus(node, parked, allow);
    key->request.nodelist = node->name;
    key->request.allow = count < node->n_gpus ? allow : NULL;
    key->request.n_allow = count < node->n_gpus ? count : 0;
}

void sched_parked_join(struct sched *sched, struct sched_job *job, const struct class_key *key)
{
    const struct parked_job *parked = job->rules != NULL ? job->rules->parked : NULL;
    uint32_t allow[NODE_GPUS_LIMIT];
    struct class_key bound = *key;
    if (parked != NULL) {
        keep_own(job->rules, &key->request);
        bind_key(sched, parked, &bound, allow);
    }
    struct sched_job old = *job;
    sched_join_class(sched, job, &bound); // copies the borrowed members of the key
    sched_leave_class(sched, &old);
}

/* To its node, for the first time or again. */
static void bind(struct sched *sched, struct sched_job *job)
{
    struct job_rules *rules = job->rules;
    struct class_key key = job->class->key;
    _cleanup_free_ char *nodelist = take_ptr(rules->own_nodelist);
    _cleanup_free_ uint32_t *allow = take_ptr(rules->own_allow);
    if (rules->is_bound) {
        key.request.nodelist = nodelist;
        key.request.allow = rules->n_own_allow > 0 ? allow : NULL;
        key.request.n_allow = rules->n_own_allow;
    }
    sched_parked_join(sched, job, &key);
}

int64_t sched_job_needs(const struct sched *sched, const struct sched_job *job)
{
    int64_t done_ms = job->rules != NULL && job->rules->done_ms > 0 ? job->rules->done_ms : 0;
    struct estimate estimate;
    sched_class_estimate(sched, &job->class->key, done_ms, ESTIMATE_LIKELY, &estimate);
    return estimate.likely_ms > done_ms ? estimate.likely_ms - done_ms : 1;
}

static void unbind(struct sched *sched, struct sched_job *job)
{
    struct job_rules *rules = job->rules;
    if (!rules->is_bound)
        return;
    rules->is_bound = false;
    struct class_key key = job->class->key;
    _cleanup_free_ char *nodelist = take_ptr(rules->own_nodelist);
    _cleanup_free_ uint32_t *allow = take_ptr(rules->own_allow);
    key.request.nodelist = nodelist;
    key.request.allow = rules->n_own_allow > 0 ? allow : NULL;
    key.request.n_allow = rules->n_own_allow;
    sched_parked_join(sched, job, &key);
}

/* --- reports --- */

static struct parked_job *make(struct sched_job *job, const struct allocation *left, int64_t since_ms)
{
    struct parked_job *parked = xcalloc(1, sizeof(*parked));
    parked->job = job;
    parked->since_ms = since_ms;
    allocation_copy(&parked->left, left);
    allocation_copy(&parked->owed, left);
    job->rules->parked = parked;
    return parked;
}

void sched_parked_take(struct sched *sched, struct sched_job *job, const struct sched_job_spec *spec)
{
    if (spec->ran_ms == 0 && spec->waited_ms == 0 && spec->parked_ms == 0 && spec->done_ms == 0)
        return;
    struct job_rules *rules = sched_rules(job);
    rules->done_ms = spec->done_ms;
    rules->ran_ms = spec->ran_ms;
    rules->waited_ms = spec->waited_ms;
    if (spec->parked_ms == 0 || spec->left == NULL || spec->left->n_nodes != 1 || spec->left->n_gpus == 0)
        return;
    struct parked_job *parked = make(job, spec->left, spec->parked_ms);
    parked->guest = spec->guest;
    sched->are_debts_in_question = true;
    bind(sched, job);
    parked->needs_ms = sched_job_needs(sched, job);
    sched_parked_put(sched, parked);
    set_timer(sched);
}

void sched_parked_forget(struct sched *sched, struct sched_job *job)
{
    struct job_rules *rules = job->rules;
    if (rules == NULL)
        return;
    struct parked_job *parked = sched_parked_lift(sched, job);
    if (parked != NULL)
        discard(sched, parked);
    unbind(sched, job);
    rules->ran_ms = rules->waited_ms = 0;
}

void sched_parked_free(struct job_rules *rules)
{
    if (rules->parked != NULL) {
        allocation_clear(&rules->parked->left);
        allocation_clear(&rules->parked->owed);
    }
    free(rules->parked);
    free(rules->own_nodelist);
    free(rules->own_allow);
}

void sched_parked(struct sched *sched, int64_t now_ms, uint64_t id, int64_t done_ms)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    struct sched_job *job = sched_find(sched, id);
    if (job == NULL || job->run == NULL || job->run->allocation.n_nodes != 1)
        return;
    struct job_rules *rules = sched_rules(job);
    int64_t ran_ms, waited_ms;
    period_of(sched, job->run, &ran_ms, &waited_ms);
    rules->waited_ms += rules->ran_ms > 0 ? waited_ms : 0; // the wait for its first start does not count
    rules->ran_ms += ran_ms;
    rules->stage = job->run->stage;
    rules->done_ms = done_ms;
    struct parked_job *parked = make(job, &job->run->allocation, sched->now_ms);
    parked->guest = job->run->guest;
    parked->is_guest_due = parked->guest != 0;
    sched_run_over(sched, job);
    bind(sched, job);
    parked->needs_ms = sched_job_needs(sched, job);
    sched_parked_put(sched, parked);
    set_timer(sched);
    sched_place_in_queue(sched, job);
}

void sched_park_refused(struct sched *sched, int64_t now_ms, uint64_t id)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    struct sched_job *job = sched_find(sched, id);
    if (job == NULL || job->run == NULL)
        return;
    /* Its caller knows for how long it refuses, or it refuses for good. */
    sched->are_debts_in_question |= sched->n_parked > 0;
    sched_rules(job)->refuses_park =
        sched->callbacks.may_park == NULL || sched->callbacks.may_park(sched->callbacks.arg, id);
    const struct sched_job *guest = job->run->is_being_parked ? sched_find(sched, job->run->guest) : NULL;
    if (guest != NULL && guest->entry.class != NULL)
        guest->entry.class->asked_ms = 0; // it may have another host
    job->run->is_giving_way &= !job->run->is_being_parked;
    job->run->is_being_parked = false;
    sched->is_dirty = true;
}

void sched_give_back(struct sched *sched, struct sched_run *run, uint64_t next, uint64_t guest)
{
    if (run->is_giving_way)
        return;
    run->is_giving_way = run->is_being_parked = true;
    run->guest = next;
    sched->counts.preemptions++;
    sched->callbacks.park(sched->callbacks.arg, run->job->entry.job, guest);
}

int sched_parked_invariant(const struct sched *sched, struct error *err)
{
    for (size_t i = 0; i < sched->n_parked; i++) {
        const struct parked_job *parked = sched->parked[i];
        if (parked->job->rules->parked != parked || parked->job->run != NULL)
            return error_set(
                err, -EBADMSG, "job %llu is parked and is not", (unsigned long long)parked->job->entry.job);
        for (size_t k = 0; k < parked->owed.n_gpus && !sched_parked_is_held(parked); k++) {
            const struct alloc_gpu *owed = &parked->owed.gpus[k];
            const struct cluster_gpu *gpu = &sched->cluster.nodes[owed->node].gpus[owed->gpu];
            if (gpu->return_ms > parked->due_ms || gpu->parked == 0)
                return error_set(
                    err, -EBADMSG, "GPU %s is due to a parked job, and promised longer", gpu->uuid);
        }
    }
    return 0;
}
