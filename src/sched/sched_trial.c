/* SPDX-License-Identifier: MIT */
/*
 * Tests whether, if some running jobs of one node were parked, all jobs parked there would return in time and
 * a waiting job would start. Also parks several jobs for one: the GPUs of those parked first are kept until
 * the last is parked, or one refuses.
 */
#include "sched/sched_private.h"

/* Each GPU is left for at least this long. */
static bool are_left(const struct sched *sched, const struct sched_run *run, int64_t until_ms)
{
    const struct allocation *held = &run->allocation;
    bool is_good = true;
    for (size_t i = 0; i < held->n_gpus; i++)
        is_good &= sched->cluster.nodes[held->gpus[i].node].gpus[held->gpus[i].gpu].return_ms >= until_ms;
    return is_good;
}

/* If debts were moved, too. */
static bool has_place(struct sched *sched, const struct sched_request *request, const struct fit *fit)
{
    _cleanup_(allocation_clear) struct allocation found = { 0 };
    struct debts before;
    uint64_t work = 0;
    bool has = placement_choose(&placement_first_fit, NULL, &sched->cluster, request, fit, &found, &work);
    if (!has && sched_debts_move(sched, request, fit, &before)) {
        has = placement_choose(&placement_first_fit, NULL, &sched->cluster, request, fit, &found, &work);
        sched_debts_undo(sched, &before);
    }
    return has;
}

bool sched_would_start(struct sched *sched, const struct queue_class *class, struct fit *fit,
    struct sched_run *const *hosts, size_t count, int64_t for_ms)
{
    struct cluster *cluster = &sched->cluster;
    struct parked_job trials[TRIAL_MAX];
    size_t n_dirty = cluster->n_dirty;
    int64_t slot_ms = sched_park_slot(sched),
            until_ms = sched->now_ms + (slot_ms > for_ms ? slot_ms : for_ms);
    bool is_good = count <= TRIAL_MAX;
    for (size_t i = 0; i < count && is_good; i++)
        sched_parked_try(sched, hosts[i], &trials[i]);
    if (!is_good)
        return false;
    for (size_t i = 0; i < count; i++)
        is_good &= are_left(sched, hosts[i], until_ms);
    is_good = is_good && has_place(sched, &class->key.request, fit);
    for (size_t i = count; i-- > 0;)
        sched_parked_try_over(sched, hosts[i], &trials[i]);
    cluster->n_dirty = n_dirty; // nothing has come free
    return is_good;
}

bool sched_give_back_all(
    struct sched *sched, struct sched_run *const *hosts, size_t count, uint64_t next, uint64_t guest)
{
    uint64_t ids[TRIAL_MAX], n_over = sched->n_over;
    for (size_t i = 0; i < count; i++)
        ids[i] = hosts[i]->job->entry.job;
    for (size_t i = 0; i < count; i++) { // by their ids: a callback may end one immediately
        struct sched_job *host = sched_find(sched, ids[i]);
        if (host != NULL && host->run != NULL)
            sched_give_back(sched, host->run, next, guest);
    }
    return sched->n_over != n_over;
}

bool sched_is_awaited(const struct sched *sched, uint64_t guest)
{
    for (size_t i = 0; i < sched->n_runs; i++)
        if (sched->runs[i]->is_being_parked && sched->runs[i]->guest == guest)
            return true;
    return false;
}
