/* SPDX-License-Identifier: MIT */
/*
 * One pass. Classes are visited in order of rank, but only these: the first few that are blocked (they have
 * reservations, which are planned again), those that have not been tried since they changed, and those that
 * newly freed resources could help. Every other class did not fit before and nothing has changed for it.
 */

#include "sched/sched_private.h"

void sched_fit_of(const struct sched *sched, const struct queue_class *class, uint64_t *reservations,
    size_t max, struct fit *ret)
{
    *ret = (struct fit){
        .now_ms = sched->now_ms,
        .end_ms = sched->now_ms + class->horizon_ms,
        .limit_ms = class->key.limit_ms > 0 ? sched->now_ms + class->key.limit_ms : TIME_NEVER,
        .class_number = class->number,
        .reservations = reservations,
        .n_reservations = sched_usable(sched, class->key.uid, reservations, max),
        .may_give_way = class->key.is_preemptible,
        .parked_max = sched->settings.park_layers,
    };
    if (sched_parks(sched) && (class->key.is_preemptible || sched_class_can_park(sched, class)))
        ret->give_back_ms = sched->now_ms + sched_park_slot(sched);
}

/* --- freed resources --- */

/* Resources that other jobs could be made to return count as well. */
static void add_preemptible(const struct node_runs *runs, struct queue_offer *ret)
{
    for (size_t i = 0; i < runs->count; i++) {
        const struct sched_run *run = runs->runs[i];
        if (!sched_run_yields(run))
            continue;
        struct node_offer *offers[] = { &ret->any, &ret->brief };
        for (size_t k = 0; k < 2; k++) {
            offers[k]->whole += (uint32_t)run->allocation.n_gpus;
            offers[k]->share = offers[k]->part = SHARE_WHOLE;
            offers[k]->gpu_mem = offers[k]->memory = UINT64_MAX;
            offers[k]->cpu_milli = UINT32_MAX;
        }
    }
}

static void offer_of(const struct sched *sched, uint32_t node, struct queue_offer *ret)
{
    const struct cluster_node *where = &sched->cluster.nodes[node];
    *ret = (struct queue_offer){ .brief = *node_index_offer(sched->cluster.index, node) };
    cluster_offer(where, HELD_IS_TAKEN, &ret->any);
    int64_t held_ms = where->hold_from_ms;
    for (size_t i = 0; i < where->n_gpus; i++) {
        int64_t from_ms = where->gpus[i].hold_from_ms;
        if (from_ms < TIME_NEVER)
            held_ms = from_ms > held_ms || held_ms == TIME_NEVER ? from_ms : held_ms;
    }
    ret->window_ms = held_ms == TIME_NEVER ? TIME_NEVER : held_ms - sched->now_ms;
    if (sched->n_preemptible > 0 && node < sched->n_nodes)
        add_preemptible(&sched->nodes[node], ret);
}

static void widen(struct queue_offer *offer, const struct queue_offer *by)
{
    struct node_offer *to[] = { &offer->any, &offer->brief };
    const struct node_offer *from[] = { &by->any, &by->brief };
    for (size_t i = 0; i < 2; i++) {
        to[i]->whole = from[i]->whole > to[i]->whole ? from[i]->whole : to[i]->whole;
        to[i]->share = from[i]->share > to[i]->share ? from[i]->share : to[i]->share;
        to[i]->part = from[i]->part > to[i]->part ? from[i]->part : to[i]->part;
        to[i]->gpu_mem = from[i]->gpu_mem > to[i]->gpu_mem ? from[i]->gpu_mem : to[i]->gpu_mem;
        to[i]->cpu_milli = from[i]->cpu_milli > to[i]->cpu_milli ? from[i]->cpu_milli : to[i]->cpu_milli;
        to[i]->memory = from[i]->memory > to[i]->memory ? from[i]->memory : to[i]->memory;
        to[i]->models |= from[i]->models;
    }
    offer->window_ms = by->window_ms > offer->window_ms ? by->window_ms : offer->window_ms;
}

/* Resources of the dirty nodes: of each, or the maximum if there are many. */
static size_t collect_offers(const struct sched *sched, struct queue_offer offers[QUEUE_OFFERS_MAX])
{
    const struct cluster *cluster = &sched->cluster;
    size_t count = cluster->n_dirty < QUEUE_OFFERS_MAX ? cluster->n_dirty : QUEUE_OFFERS_MAX;
    for (size_t i = 0; i < count; i++)
        offer_of(sched, cluster->dirty[i], &offers[i]);
    if (cluster->n_dirty <= QUEUE_OFFERS_MAX)
        return count;
    for (size_t i = 1; i < cluster->n_dirty; i++) {
        struct queue_offer offer;
        offer_of(sched, cluster->dirty[i], &offer);
        widen(&offers[0], &offer);
    }
    return 1;
}

/* --- one class --- */

void sched_start(struct sched *sched, struct sched_job *job, struct allocation *allocation)
{
    uint64_t id = job->entry.job;
    sched->counts.starts++;
    if (job->rules == NULL || !job->rules->is_array) {
        sched_leave_queue(sched, job);
        sched_run_begin(sched, job, allocation, 0);
        (void)sched->callbacks.start(sched->callbacks.arg, id, allocation);
        return;
    }
    struct job_rules *rules = job->rules;
    rules->elements--;
    rules->elements_open++;
    struct class_key key = job->class->key;
    struct sched_job_spec element = {
        .submit_ms = job->entry.submit_ms,
        .key = key,
        .array = id,
    };
    sched_place_in_queue(sched, job);
    element.id = sched->callbacks.start(sched->callbacks.arg, id, allocation);
    sched_run_begin(sched, sched_add_job(sched, &element), allocation, 0);
}

static bool is_learnt(const struct sched *sched)
{
    return sched->settings.policy->preempting == PREEMPT_LEARNT;
}

static bool start_head(struct sched *sched, struct queue_class *class, const struct fit *fit)
{
    struct allocation allocation = { 0 };
    struct fit now = *fit;
    now.counts_starts = true;
    if (!placement_choose(sched->settings.placement, sched->placement_state, &sched->cluster,
            &class->key.request, &now, &allocation, &sched->counts.index_work))
        return false;
    class->asked_ms = 0;
    sched_start(sched, sched_find(sched, class->first->job), &allocation);
    allocation_clear(&allocation);
    return true;
}

/* On GPUs that were owed to parked jobs, which will have others. */
static bool start_where_owed(struct sched *sched, struct queue_class *class, const struct fit *fit)
{
    struct debts before;
    if (!sched_debts_move(sched, &class->key.request, fit, &before))
        return false;
    bool has_started = start_head(sched, class, fit);
    if (has_started)
        sched_debts_keep(sched, &before);
    else
        sched_debts_undo(sched, &before);
    return has_started;
}

/* On GPUs that stay owed to parked jobs, although it may have to start again. */
static bool start_borrowing(struct sched *sched, struct queue_class *class, const struct fit *fit)
{
    struct fit borrowing;
    return sched_borrow_fit(sched, class, fit, &borrowing) && start_head(sched, class, &borrowing);
}

/* True if its array runs its maximum of elements; then it leaves the queue. */
static bool keep_back(struct sched *sched, struct sched_job *job)
{
    bool is_kept = !sched_element_may_start(sched, job);
    if (is_kept)
        sched_place_in_queue(sched, job);
    return is_kept;
}

static void was_tried(struct sched *sched, struct queue_class *class)
{
    if (!class->is_fresh)
        return;
    class->is_fresh = false;
    queue_refresh(&sched->queue, class);
}

/* `parked`: the head is parked. It ignores holds, which would be as much later without the park.
 */
static int try_head(struct sched *sched, struct queue_class *class, const struct parked_job *parked)
{
    uint64_t reservations[16];
    struct fit fit;
    struct account *limiting = sched_limiting(sched, &class->key, class->account, class->group, NULL, 0);
    sched->counts.classes_tried++;
    if (keep_back(sched, sched_find(sched, class->first->job)))
        return -1;
    if (limiting != NULL) {
        sched_park(sched, class, limiting);
        return -1;
    }
    sched_fit_of(sched, class, reservations, 16, &fit);
    if (parked != NULL)
        fit.end_ms = sched->now_ms;
    if (start_head(sched, class, &fit) || start_where_owed(sched, class, &fit) ||
        start_borrowing(sched, class, &fit))
        return 1;
    if (is_learnt(sched) && sched_learnt_make_way(sched, class, &fit) && start_head(sched, class, &fit))
        return 1;
    bool may_ask = sched->n_preemptible > 0 && !class->key.is_preemptible && !is_learnt(sched);
    /* In a simulation they end immediately: then it starts before anything else is planned. */
    if (may_ask && sched_make_way(sched, class, &fit) && start_head(sched, class, &fit))
        return 1;
    uint64_t head = class->first->job;
    bool is_guest = sched_parks(sched) && sched_guest_make_way(sched, class, &fit);
    bool is_open = is_guest && class->first->job == head; // its host may belong to its class
    if (is_open && (start_head(sched, class, &fit) || start_where_owed(sched, class, &fit)))
        return 1;
    was_tried(sched, class);
    return 0;
}

/* Another job already has the GPUs that it left. */
static bool is_kept_for_others(const struct sched_job *job)
{
    return job->rules != NULL && job->rules->parked != NULL && job->rules->parked->is_kept;
}

int sched_try_class(struct sched *sched, struct queue_class *class)
{
    struct sched_job *head = sched->n_parked > 0 ? sched_find(sched, class->first->job) : NULL;
    if (head != NULL && is_kept_for_others(head)) {
        was_tried(sched, class);
        return 0;
    }
    struct parked_job *parked = head != NULL ? sched_parked_lift(sched, head) : NULL;
    int outcome = try_head(sched, class, parked);
    if (parked != NULL && head->run != NULL)
        sched_parked_began(sched, parked);
    else if (parked != NULL)
        sched_parked_put(sched, parked);
    return outcome;
}

static bool plan(struct sched *sched, struct queue_class *class)
{
    struct sched_job *head = sched->n_parked > 0 ? sched_find(sched, class->first->job) : NULL;
    struct parked_job *parked = head != NULL ? sched_parked_lift(sched, head) : NULL;
    bool is_planned = sched_plan(sched, class);
    if (parked != NULL)
        sched_parked_put(sched, parked);
    return is_planned;
}

static uint32_t reservations_of(const struct sched *sched)
{
    if (is_learnt(sched))
        return LEARNT_HEADS;
    switch (sched->settings.policy->backfill) {
    case BACKFILL_EASY: return sched->settings.reservations;
    case BACKFILL_CONSERVATIVE: return PLAN_ALL;
    default: return 0;
    }
}

/* Strict: the first that cannot start ends the pass. */
static void pass_strict(struct sched *sched)
{
    struct queue_class *class;
    while ((class = queue_first(&sched->queue)) != NULL) {
        sched->counts.examined++;
        if (sched_try_class(sched, class) == 0)
            return;
    }
}

/* Tries the first classes in order, until this many are blocked and have their reservations. Returns the
 * last. */
static struct queue_class *pass_heads(struct sched *sched, uint32_t reservations)
{
    struct queue_class *behind = NULL;
    uint32_t tried = sched_parks(sched) ? GUEST_HEADS : 0;
    for (uint32_t planned = 0; planned < reservations || tried > 0;) {
        struct queue_class *class = behind != NULL ? queue_next(behind) : queue_first(&sched->queue);
        if (class == NULL)
            break;
        sched->counts.examined++;
        if (sched_try_class(sched, class) != 0)
            continue; // its position may have changed: continue after the one before it
        tried -= tried > 0;
        planned += is_learnt(sched) || (planned < reservations && plan(sched, class));
        behind = class;
    }
    return behind;
}

static void pass_backfill(struct sched *sched)
{
    struct plan_hold *old = NULL;
    size_t n_old = 0;
    for (size_t i = 0; sched->are_holds_in_question && i < sched->n_holds; i++)
        for (size_t k = 0; k < sched->holds[i].allocation.n_nodes; k++)
            cluster_touch(&sched->cluster, &sched->cluster.nodes[sched->holds[i].allocation.nodes[k].node]);
    sched->are_holds_in_question = false;
    sched_plan_drop_all(sched, &old, &n_old);
    sched_guests_first(sched);
    struct queue_class *behind = pass_heads(sched, reservations_of(sched)), *class;
    sched_plan_compare(sched, old, n_old);
    struct queue_offer offers[QUEUE_OFFERS_MAX];
    uint64_t version = sched->cluster.version;
    struct queue_search search = { offers, collect_offers(sched, offers), &sched->counts.queue_work };
    while ((class = queue_seek(&sched->queue, behind, &search)) != NULL) {
        sched->counts.examined++;
        int outcome = sched_try_class(sched, class);
        if (outcome == 0)
            behind = class;
        if (outcome == 1 && version != sched->cluster.version && sched->cluster.n_dirty <= QUEUE_OFFERS_MAX)
            search = (struct queue_search){ offers, collect_offers(sched, offers), search.work };
        version = sched->cluster.version;
    }
    sched_recall(sched);
}

/* --- the pass --- */

static void run_timers(struct sched *sched)
{
    int kind = 0;
    void *owner = NULL;
    while (timers_take(&sched->timers, sched->now_ms, &kind, &owner)) {
        switch ((enum timer_kind)kind) {
        case TIMER_JOB: sched_job_timer(sched, owner); break;
        case TIMER_RUN: sched_run_expect(sched, owner); break;
        case TIMER_CLASS: sched_rank_head(sched, owner); break;
        case TIMER_RERANK: sched_rerank_timer(sched); break;
        case TIMER_RESERVATION: sched_reservation_timer(sched); break;
        case TIMER_LIMIT: sched_unpark_all(sched); break;
        case TIMER_START: sched_run_start_over(sched, owner); break;
        case TIMER_BAR: sched_bar_timer(sched); break;
        case TIMER_RETURN: sched->is_dirty = true; break;
        }
    }
}

/* True if the node has lost resources on which a class's known need may depend. */
static bool has_shrunk(struct sched *sched, uint32_t position)
{
    const struct node_offer *offer = node_index_offer(sched->cluster.index, position);
    uint32_t cpu_milli = sched->cluster.nodes[position].cpu_milli;
    struct node_runs *seen = sched_node_runs(sched, position);
    bool is_less =
        offer->gpus < seen->gpus || (seen->models & ~offer->models) != 0 || cpu_milli < seen->cpu_milli;
    seen->gpus = offer->gpus;
    seen->models = offer->models;
    seen->cpu_milli = cpu_milli;
    return is_less;
}

/*
 * Updates after nodes were changed from outside: when their GPUs will be free and, if a model is new or a
 * node has shrunk, the need of each class. Nodes that only grow leave needs lower than necessary, which is
 * harmless.
 */
static void update_dirty(struct sched *sched)
{
    const struct placement *placement = sched->settings.placement;
    bool is_other = sched->n_models != sched->cluster.n_models;
    sched->n_models = sched->cluster.n_models;
    for (size_t i = 0; i < sched->cluster.n_dirty; i++) {
        uint32_t node = sched->cluster.dirty[i];
        if (placement->dirty != NULL)
            placement->dirty(sched->placement_state, &sched->cluster, node);
        sched_node_late(sched, node);
        is_other |= has_shrunk(sched, node);
    }
    if (!is_other)
        return;
    for (struct queue_class *class = queue_first(&sched->queue); class != NULL; class = queue_next(class))
        class->is_fresh = true;
    sched_rerank_all(sched);
}

static void decide(struct sched *sched)
{
    if (sched->queue.root == NULL)
        return;
    if (sched->settings.policy->preempting != PREEMPT_NONE && !is_learnt(sched))
        sched_pass_preemptive(sched);
    else if (sched->settings.policy->backfill == BACKFILL_NONE)
        pass_strict(sched);
    else
        pass_backfill(sched);
}

/* A class whose rank fell when its head started is ahead of those already tried. */
static bool was_passed_over(const struct sched *sched)
{
    const struct policy *policy = sched->settings.policy;
    bool tries_all = policy->preempting == PREEMPT_NONE && policy->backfill != BACKFILL_NONE;
    return tries_all && sched->queue.root != NULL && sched->queue.root->has_fresh;
}

void sched_pass(struct sched *sched, int64_t now_ms)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    run_timers(sched);
    if (!sched_is_dirty(sched))
        return;
    sched->counts.passes++;
    sched->is_dirty = false;
    bool is_ranked = sched->settings.policy->uses_fairshare && !sched->is_fork;
    if (sched->rerank_timer == 0 && is_ranked && sched->queue.root != NULL)
        timers_set(&sched->timers, sched->now_ms + RERANK_MS, TIMER_RERANK, sched, &sched->rerank_timer);
    update_dirty(sched);
    sched_head_starts_return(sched);
    sched_return_due(sched);
    uint64_t n_over;
    do { // again if preempted jobs stopped at once
        n_over = sched->n_over;
        sched_own_settle(sched);
        sched->is_deciding = true;
        sched->failure = (struct learnt_failure){ 0 };
        sched->guests_over = 0;
        decide(sched);
        sched->is_deciding = false;
    } while (sched->n_over != n_over || was_passed_over(sched));
    sched_head_starts_return(sched);
    sched_own_settle(sched); // for queries of the order
    sched->cluster.n_dirty = 0;
    sched->is_dirty = false;
}

bool sched_is_dirty(const struct sched *sched)
{
    return sched->is_dirty || (sched->cluster.n_dirty > 0 && sched->queue.root != NULL);
}

int64_t sched_next_ms(const struct sched *sched)
{
    return timers_next(&sched->timers);
}
