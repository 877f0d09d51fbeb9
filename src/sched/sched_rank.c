/* SPDX-License-Identifier: MIT */
/*
 * The expected run times and ranks of classes. Ranks change only at events: its head, its user's usage (in
 * steps, checked once a minute), its history, its age cap. In between the order of all classes is constant.
 */
#include <math.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define FACTOR_STEP 0.125 // log2 of usage: smaller steps would change the order all the time

int64_t request_gpu_milli(const struct cluster *cluster, const struct sched_request *request)
{
    if (!request_is_shared(request))
        return (int64_t)request->gpus * SHARE_WHOLE;
    if (request->share > 0)
        return (int64_t)request->gpus * request->share;
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        if (node->n_gpus > 0 && node->gpus[0].memory_bytes >= request->gpu_mem)
            return (int64_t)request->gpus *
                   (int64_t)(request->gpu_mem / (node->gpus[0].memory_bytes / SHARE_WHOLE + 1));
    }
    return (int64_t)request->gpus * SHARE_WHOLE;
}

static void history_key_of(
    const struct cluster *cluster, const struct class_key *key, struct history_key *ret)
{
    *ret = (struct history_key){
        .uid = key->uid,
        .gid = key->gid,
        .command_hash = key->command_hash,
        .limit_ms = key->limit_ms,
        .burst = key->burst,
        .gpu_milli = (uint32_t)request_gpu_milli(cluster, &key->request),
    };
}

void sched_history_key(const struct sched *sched, const struct class_key *key, struct history_key *ret)
{
    history_key_of(&sched->cluster, key, ret);
}

/* An external estimate, doubled each time a job exceeds it. */
static void take_given(int64_t total_ms, int64_t elapsed_ms, struct estimate *ret)
{
    while (total_ms <= elapsed_ms)
        total_ms = total_ms > INT64_MAX / 2 ? INT64_MAX : total_ms * 2;
    *ret = (struct estimate){ .order_ms = total_ms,
        .likely_ms = total_ms,
        .safe_ms = total_ms,
        .basis = BASIS_NONE,
        .index_ms = total_ms - elapsed_ms };
}

void sched_class_estimate(const struct sched *sched, const struct class_key *key, int64_t elapsed_ms,
    unsigned wanted, struct estimate *ret)
{
    if (key->estimate_ms > 0) {
        take_given(key->estimate_ms, elapsed_ms, ret);
        return;
    }
    struct history_key history_key;
    history_key_of(&sched->cluster, key, &history_key);
    history_estimate(sched->history, &history_key, elapsed_ms, wanted, ret);
    if (key->limit_ms == 0)
        return;
    int64_t *bounded[] = { &ret->order_ms, &ret->likely_ms, &ret->safe_ms };
    for (size_t i = 0; i < 3; i++)
        if (*bounded[i] > key->limit_ms)
            *bounded[i] = key->limit_ms;
}

/* The account's factor changes only by at least a step. True if it has changed. */
static bool step_factor(const struct fairshare *fairshare, struct account *account, int64_t now_ms)
{
    double factor = fairshare_factor(fairshare, account, now_ms);
    if (fabs(factor - account->factor) < FACTOR_STEP)
        return false;
    account->factor = factor;
    return true;
}

/* With its department. */
static double factor_of_group(const struct account *group)
{
    return group->factor + (group->parent != NULL ? group->parent->factor : 0);
}

/* Freed GPUs are assigned as of the time before the end that frees them, and users who have used their head
 * start get another one after those who still wait for theirs. Otherwise a user with a flood of jobs, who has
 * no running job whenever one of them has ended or another user's runs, would always be ahead of
 * newcomers. */
bool sched_has_head_start(const struct queue_class *class)
{
    return class->account->running == 0 && !class->account->had_turn &&
           class->account->factor + factor_of_group(class->group) <= 0;
}

static void view_of(
    struct sched *sched, const struct queue_class *class, int64_t submit_ms, struct policy_view *ret)
{
    bool is_fair = sched->settings.policy->uses_fairshare;
    *ret = (struct policy_view){
        .submit_ms = submit_ms + history_stage_ms(class->key.stage), // running time is not waiting time
        .now_ms = sched->now_ms,
        .priority = (int32_t)class_priority(class),
        .gpus = (double)request_gpu_milli(&sched->cluster, &class->key.request) / SHARE_WHOLE,
        .order_ms = class->expected_ms,
        .user_factor = is_fair ? class->account->factor : 0,
        .group_factor = is_fair ? factor_of_group(class->group) : 0,
        .has_head_start = is_fair && sched_has_head_start(class),
        .is_preemptible = class->key.is_preemptible,
        .has_begun = class->key.has_begun,
        .limit_ms = class->key.limit_ms,
        .age_cap_ms = sched->settings.age_cap_ms,
    };
}

/* False: it has no such bound, because it is preemptible, or was moved by its owner's priorities or a
 * requeue. */
static bool view_of_bound(struct sched *sched, const struct sched_job *job, struct policy_view *ret)
{
    const struct queue_class *class = job->class;
    bool is_moved =
        class->key.had_turn || class->key.has_begun || class->key.is_preemptible || class->account->n_own > 0;
    if (sched->settings.policy->overtaken_until == NULL || is_moved)
        return false;
    view_of(sched, class, job->entry.submit_ms, ret);
    return true;
}

int64_t sched_overtaken_until(struct sched *sched, const struct sched_job *job)
{
    struct policy_view view;
    return view_of_bound(sched, job, &view) ? sched->settings.policy->overtaken_until(&view) : TIME_NEVER;
}

int64_t sched_promised_until(struct sched *sched, const struct sched_job *job)
{
    struct policy_view view;
    return view_of_bound(sched, job, &view) ? sched->settings.policy->promised_until(&view) : TIME_NEVER;
}

/* The order is monotonic in the limit: bisection. */
int64_t sched_limit_to_precede(
    struct sched *sched, const struct sched_job *job, const struct queue_class *other)
{
    struct policy_view view;
    if (!view_of_bound(sched, job, &view))
        return 0;
    int64_t expected_ms = view.order_ms, low_ms = 0, high_ms = expected_ms;
    while (high_ms - low_ms > 1) {
        view.order_ms = view.limit_ms = low_ms + (high_ms - low_ms) / 2;
        if (sched->settings.policy->rank(&view) < other->rank)
            low_ms = view.order_ms;
        else
            high_ms = view.order_ms;
    }
    return low_ms;
}

/* Does a change of order matter before resources become free? */
static bool reservations_matter(const struct sched *sched)
{
    return sched->n_holds > 0 || sched->settings.policy->backfill == BACKFILL_NONE;
}

/*
 * A job requeued to the end of the queue (at its time limit) is after all jobs that were waiting then,
 * regardless of their limits and priorities. Such jobs take turns, each for its time limit. Once no other job
 * has waited longer, the policy ranks it.
 */
static double rank_of(const struct sched *sched, const struct queue_class *class,
    const struct policy_view *view, int64_t submit_ms)
{
    bool is_turn_over =
        class->key.had_turn && queue_oldest_ms(&sched->queue, class->key.is_preemptible) < submit_ms;
    double behind = class->key.is_preemptible ? RANK_TURN_OVER_PREEMPTIBLE : RANK_TURN_OVER;
    return is_turn_over ? behind + (double)submit_ms : sched->settings.policy->rank(view);
}

void sched_rank_class(struct sched *sched, struct queue_class *class, int64_t submit_ms)
{
    const struct policy *policy = sched->settings.policy;
    struct estimate estimate;
    struct policy_view view;
    bool is_learnt = policy->preempting == PREEMPT_LEARNT;
    sched_class_estimate(sched, &class->key, history_stage_ms(class->key.stage),
        ESTIMATE_SAFE | (is_learnt ? ESTIMATE_INDEX : ESTIMATE_ORDER), &estimate);
    /* Where jobs are parked, one that takes longer than expected need not delay others for long. */
    int64_t horizon_ms = sched_parks(sched) ? estimate.likely_ms : estimate.safe_ms;
    bool is_shorter = horizon_ms < class->horizon_ms;
    class->expected_ms = is_learnt ? estimate.index_ms : estimate.order_ms;
    class->horizon_ms = horizon_ms;
    request_need(&sched->cluster, &class->key.request, &class->need);
    view_of(sched, class, submit_ms, &view);
    int64_t changes = policy->rank_changes != NULL ? policy->rank_changes(&view) : TIME_NEVER;
    timers_set(&sched->timers, changes, TIMER_CLASS, class, &class->timer);
    class->policy_rank = rank_of(sched, class, &view, submit_ms);
    sched_own_changed(sched, class);
    if (class->length == 0) {
        class->behind = -INFINITY; // until the next pass, which considers all of its owner's classes
        class->rank = class->policy_rank;
        return;
    }
    sched_move_class(sched, class, sched_own_rank(class), is_shorter);
}

void sched_move_class(struct sched *sched, struct queue_class *class, double rank, bool is_shorter)
{
    bool is_learnt = sched->settings.policy->preempting == PREEMPT_LEARNT;
    bool is_eased = rank < class->rank || is_shorter;
    /* It did not fit because of missing resources, or because of holds for others: only the latter has
     * changed. In a pass it may have moved ahead of the current position; and under a learnt order a better
     * rank may preempt more. */
    class->is_fresh |= is_eased && (sched->is_deciding || is_learnt);
    sched->are_holds_in_question |= is_eased;
    sched->is_dirty |= class->is_fresh || (rank != class->rank && reservations_matter(sched)) ||
                       (is_shorter && sched->n_holds > 0);
    queue_update(&sched->queue, class, rank);
}

void sched_rank_head(struct sched *sched, struct queue_class *class)
{
    sched_rank_class(sched, class, class->first->submit_ms);
}

void sched_begin_turns(struct sched *sched)
{
    static const double behind[] = { RANK_TURN_OVER, RANK_TURN_OVER_PREEMPTIBLE };
    for (size_t i = 0; i < 2; i++) {
        int64_t oldest_ms = queue_oldest_ms(&sched->queue, i == 1);
        struct queue_class *class;
        while ((class = queue_first_from(&sched->queue, behind[i])) != NULL &&
               class->key.is_preemptible == (i == 1) && class->first->submit_ms <= oldest_ms)
            sched_rank_head(sched, class);
    }
}

static void rerank_user(struct sched *sched, const struct account *account)
{
    for (struct queue_class *class = account->classes; class != NULL; class = class->peer_after)
        if (class->length > 0 && !class->is_parked)
            sched_rank_head(sched, class);
}

void sched_rank_near(struct sched *sched, struct queue_class *class)
{
    bool is_learnt = sched->settings.policy->preempting == PREEMPT_LEARNT;
    void *owners[HISTORY_NEAR];
    if (sched->queue.length == 0 && !is_learnt)
        return;
    size_t count = history_burst_near(sched->history, class->key.burst, owners);
    if (count == 0)
        owners[count++] = class;
    struct queue_class *near[HISTORY_NEAR];
    for (size_t i = 0; i < count; i++) {
        near[i] = owners[i];
        for (struct queue_class *alike = near[i]; alike != NULL; alike = alike->burst_next)
            if (alike->first != NULL && !alike->is_parked)
                sched_rank_head(sched, alike);
    }
    if (is_learnt)
        sched_learnt_near(sched, near, count);
}

void sched_rerank_all(struct sched *sched)
{
    for (const struct account *account = sched->fairshare.first; account != NULL; account = account->next)
        rerank_user(sched, account);
}

void sched_rerank_timer(struct sched *sched)
{
    bool is_group_changed = false;
    if (sched->queue.root == NULL)
        return; // the next pass with a waiting job sets the timer again
    timers_set(&sched->timers, sched->now_ms + RERANK_MS, TIMER_RERANK, sched, &sched->rerank_timer);
    for (struct account *account = sched->fairshare.first; account != NULL; account = account->next)
        if (account->kind != ACCOUNT_USER)
            is_group_changed |= step_factor(&sched->fairshare, account, sched->now_ms);
    for (struct account *account = sched->fairshare.first; account != NULL; account = account->next)
        if (account->kind == ACCOUNT_USER &&
            (step_factor(&sched->fairshare, account, sched->now_ms) || is_group_changed))
            rerank_user(sched, account);
}

static void join_peers(struct queue_class *class)
{
    struct account *account = class->account;
    class->peer_before = NULL;
    class->peer_after = account->classes;
    if (account->classes != NULL)
        account->classes->peer_before = class;
    account->classes = class;
}

static void leave_peers(struct queue_class *class)
{
    *(class->peer_before != NULL ? &class->peer_before->peer_after : &class->account->classes) =
        class->peer_after;
    if (class->peer_after != NULL)
        class->peer_after->peer_before = class->peer_before;
}

/* Jobs of a class with learnt durations form one burst; an element stays in its array's. In a fork, which
 * must not change the history, copies keep their bursts and new jobs have none. */
static void join_burst(struct sched *sched, const struct sched_job *job, struct class_key *key)
{
    if (sched->is_fork || key->estimate_ms > 0)
        return;
    if (key->burst != 0)
        history_burst_hold(sched->history, key->burst);
    else
        key->burst = history_burst(sched->history, class_key_hash(key), job->entry.submit_ms);
    key->stage = job->rules != NULL ? job->rules->stage : 0;
}

/* The classes of a burst, which differ only by stage, are in a list whose head is the burst's owner. */
static void join_burst_classes(struct sched *sched, struct queue_class *class)
{
    if (sched->is_fork)
        return;
    class->burst_next = history_burst_owner(sched->history, class->key.burst);
    history_burst_set_owner(sched->history, class->key.burst, class);
}

static void leave_burst_classes(struct sched *sched, struct queue_class *class)
{
    struct queue_class *first = history_burst_owner(sched->history, class->key.burst);
    if (sched->is_fork || first == NULL)
        return;
    struct queue_class **link = &first;
    while (*link != class)
        link = &(*link)->burst_next;
    *link = class->burst_next;
    history_burst_set_owner(sched->history, class->key.burst, first);
}

/* The bits and the priority of its partitions, which are in the cluster's table, and whose jobs it has. */
static void place_class(const struct sched *sched, struct queue_class *class)
{
    struct sched_request *request = &class->key.request;
    request->partitions = cluster_partition_bits(&sched->cluster, request->partition, &class->tier);
    request->heeds_bars = true;
    request->uid = class->key.uid;
}

void sched_place_classes(struct sched *sched)
{
    for (const struct account *account = sched->fairshare.first; account != NULL; account = account->next)
        for (struct queue_class *class = account->classes; class != NULL; class = class->peer_after) {
            place_class(sched, class);
            class->is_fresh = true;
        }
}

void sched_join_class(struct sched *sched, struct sched_job *job, const struct class_key *key)
{
    bool is_new = false;
    struct class_key joined = *key;
    join_burst(sched, job, &joined);
    struct queue_class *class = queue_hold_class(&sched->queue, &joined, &is_new);
    if (is_new) {
        class->account = fairshare_account(&sched->fairshare, key->uid, ACCOUNT_USER);
        class->group = fairshare_account(&sched->fairshare, key->gid, ACCOUNT_GROUP);
        class->is_fresh = true;
        place_class(sched, class);
        join_peers(class);
        class->account->n_own += class->key.own_priority > 0;
        join_burst_classes(sched, class);
    }
    job->class = class;
    fairshare_set_parent(&sched->fairshare, class->account, class->group, sched->now_ms);
}

void sched_head_start_changed(struct sched *sched, struct account *account, bool is_over)
{
    if (!sched->settings.policy->uses_fairshare)
        return;
    account->had_turn = is_over;
    sched->is_head_start_due |= is_over; // the next pass grants or withholds it
    if (!is_over)
        rerank_user(sched, account);
}

/* True if a job of a user with a head start waits. */
static bool is_newcomer_waiting(const struct sched *sched)
{
    for (const struct account *account = sched->fairshare.first; account != NULL; account = account->next)
        for (const struct queue_class *class = account->classes; class != NULL; class = class->peer_after)
            if (class->length > 0 && !class->is_parked) {
                if (sched_has_head_start(class))
                    return true;
                break; // its other classes have none either, unless groups differ
            }
    return false;
}

void sched_head_starts_return(struct sched *sched)
{
    if (!sched->is_head_start_due || is_newcomer_waiting(sched))
        return;
    for (struct account *account = sched->fairshare.first; account != NULL; account = account->next) {
        if (!account->had_turn)
            continue;
        account->had_turn = false;
        rerank_user(sched, account);
    }
    sched->is_head_start_due = false;
}

void sched_leave_class(struct sched *sched, struct sched_job *job)
{
    struct queue_class *class = job->class;
    job->class = NULL;
    if (class->users == 1) {
        sched_unpark_one(sched, class);
        leave_peers(class);
        class->account->n_own -= class->key.own_priority > 0;
        for (size_t i = 0; i < sched->n_holds; i++)
            if (sched->holds[i].class == class)
                sched->holds[i].class = NULL;
        timers_set(&sched->timers, TIME_NEVER, TIMER_CLASS, class, &class->timer);
        leave_burst_classes(sched, class);
    }
    if (!sched->is_fork)
        history_burst_leave(sched->history, class->key.burst);
    queue_drop_class(&sched->queue, class);
}
