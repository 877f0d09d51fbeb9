/* SPDX-License-Identifier: MIT */
/*
 * Short jobs go first. A waiting job that is blocked, the guest, may have the GPUs of a running one, its
 * host, which is parked for it, if
 *   - the host has run for its quantum, and is of no higher priority, nor one that its owner wants first,
 *   - the guest is probably over (the median of its predicted run time) in what the host still needs, divided
 *     by park_ratio, and before the host must return,
 *   - the guest needs no more GPUs than the host has, and
 *   - the guest has certainly ended by then, or can be parked itself (fit.c).
 * Behind a blocked job that is no guest, because it cannot be parked and has no time limit, nobody is a
 * guest: it needs GPUs of which nothing is owed, and there would be fewer and fewer. Order, shares, limits
 * and holds are those of all waiting jobs: who is asked is the first blocked job for which there is a host.
 * Of several hosts the narrowest is parked, then the one from whose GPUs the fewest are parked, then the one
 * that needs longest.
 */
#include "base/memory.h"
#include "sched/sched_private.h"

#define ASK_AGAIN_MS 600000 // a host that is being parked was asked for; not another one for the same guest
#define FITS_MAX     16U    // hosts tried in the ledger

struct guest {
    struct sched *sched;
    const struct queue_class *class;
    struct fit *fit;
    int64_t needs_ms; // probably
};

static uint32_t parked_from(const struct sched *sched, const struct sched_run *run)
{
    uint32_t most = 0;
    for (size_t i = 0; i < run->allocation.n_gpus; i++) {
        const struct alloc_gpu *held = &run->allocation.gpus[i];
        uint32_t parked = sched->cluster.nodes[held->node].gpus[held->gpu].parked;
        most = parked > most ? parked : most;
    }
    return most;
}

bool sched_is_preferred(const struct queue_class *host, const struct queue_class *guest)
{
    return host->account == guest->account && host->key.own_priority > guest->key.own_priority;
}

static bool can_host(const struct guest *guest, const struct sched_run *run)
{
    const struct sched *sched = guest->sched;
    int64_t left_ms = run->expected_end_ms - sched->now_ms;
    uint32_t parked = parked_from(sched, run), slots = parked > 0 ? sched->settings.park_bound : 1;
    return !run->is_giving_way && run->allocation.n_gpus >= guest->class->key.request.gpus &&
           left_ms / sched->settings.park_ratio >= guest->needs_ms &&
           class_priority(run->job->class) <= class_priority(guest->class) &&
           !sched_is_preferred(run->job->class, guest->class) &&
           sched_run_budget(sched, run) >= guest->needs_ms + slots * sched_park_slot(sched) &&
           parked < sched->settings.park_layers && !sched_run_is_kept(sched, run) &&
           sched_run_can_park(sched, run);
}

static bool is_better(const struct sched *sched, const struct sched_run *a, const struct sched_run *b)
{
    if (a->allocation.n_gpus != b->allocation.n_gpus)
        return a->allocation.n_gpus < b->allocation.n_gpus;
    uint32_t left = parked_from(sched, a), right = parked_from(sched, b);
    if (left != right)
        return left < right;
    if (a->expected_end_ms != b->expected_end_ms)
        return a->expected_end_ms > b->expected_end_ms;
    return a->job->entry.job > b->job->entry.job;
}

/* The best hosts first, at most FITS_MAX. */
static size_t list_hosts(const struct guest *guest, struct sched_run *hosts[FITS_MAX])
{
    const struct sched *sched = guest->sched;
    size_t count = 0;
    for (size_t i = 0; i < sched->n_runs; i++) {
        struct sched_run *run = sched->runs[i];
        if (!can_host(guest, run))
            continue;
        size_t at = count < FITS_MAX ? count++ : FITS_MAX;
        for (; at > 0 && is_better(sched, run, hosts[at - 1]); at--)
            if (at < FITS_MAX)
                hosts[at] = hosts[at - 1];
        if (at < FITS_MAX)
            hosts[at] = run;
    }
    return count;
}

static bool is_plain(const struct sched *sched, const struct queue_class *class)
{
    const struct sched_request *request = &class->key.request;
    bool was_asked = class->asked_ms != 0 && sched->now_ms - class->asked_ms < ASK_AGAIN_MS;
    return !was_asked && !class->key.is_preemptible && request->gpus > 0 && request->nodes <= 1 &&
           !request_is_shared(request);
}

bool sched_guest_make_way(struct sched *sched, struct queue_class *class, struct fit *fit)
{
    struct guest guest = { .sched = sched, .class = class, .fit = fit };
    struct sched_run *hosts[FITS_MAX];
    if (class->key.request.gpus > 0 && class->key.limit_ms == 0 && fit->give_back_ms == 0)
        sched->are_guests_over = true;
    if (sched->are_guests_over || !is_plain(sched, class))
        return false;
    guest.needs_ms = sched_job_needs(sched, sched_find(sched, class->first->job));
    size_t count = list_hosts(&guest, hosts);
    int64_t end_ms = fit->end_ms;
    fit->end_ms = sched->now_ms + guest.needs_ms;
    for (size_t i = 0; i < count; i++) {
        if (!sched_would_start(sched, class, fit, &hosts[i], 1, guest.needs_ms))
            continue;
        class->asked_ms = sched->now_ms;
        return sched_give_back_all(sched, &hosts[i], 1, class->first->job, class->first->job);
    }
    fit->end_ms = end_ms;
    return false;
}

/* All that were parked for it are: their GPUs are open again. */
static void open_for(struct sched *sched, uint64_t guest)
{
    for (size_t i = 0; i < sched->n_parked; i++)
        if (sched->parked[i]->is_guest_due && sched->parked[i]->guest == guest) {
            sched->parked[i]->is_guest_due = false;
            sched_parked_keep(sched, sched->parked[i], false);
        }
}

void sched_guests_first(struct sched *sched)
{
    for (size_t i = 0; i < sched->n_parked; i++) {
        struct parked_job *parked = sched->parked[i];
        if (!parked->is_guest_due)
            continue;
        if (sched_is_awaited(sched, parked->guest)) {
            sched_parked_keep(sched, parked, true);
            continue;
        }
        const struct sched_job *job = sched_find(sched, parked->guest);
        struct queue_class *class = job != NULL ? job->entry.class : NULL;
        open_for(sched, parked->guest);
        if (class == NULL || class->is_parked)
            continue;
        (void)sched_try_class(sched, class);
        i = SIZE_MAX; // what is parked may be others now: from the first one again
    }
}

int64_t sched_guest_change(const struct sched *sched, const struct sched_run *run)
{
    int64_t ran_ms = sched->now_ms - run->allocated_ms, next_ms = sched->settings.quantum_ms;
    while (next_ms <= ran_ms)
        next_ms += next_ms / 4; // what it may be parked for grows with it
    return run->allocated_ms + next_ms;
}
