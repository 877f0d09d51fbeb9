/* SPDX-License-Identifier: MIT */
/*
 * Which running jobs are parked for a guest. A host
 *   - has run for its quantum, and is of no higher priority, nor one that its owner wants first,
 *   - may be parked for as long as the guest probably takes (the median of its predicted run time), and a
 * slot,
 *   - still needs park_ratio times as long as the guest, times the GPUs of the host for each that guests
 * would use: those of this guest, and of other waiting jobs that take at most twice as long and can be
 * parked, because a wide job that is parked for one narrow guest leaves the rest of its GPUs idle. It is one
 * that has enough GPUs: the narrowest, then the one from whose GPUs the fewest are parked, then the one that
 * needs longest. If there is none, and the cluster is one node, it is a few that are narrower: then each
 * needs longer by the same factor as there are hosts, because all of them wait for one guest. On several
 * nodes the hosts of a wide guest would be bound to their node while others are free.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/sched_private.h"

#define FITS_MAX  16U // hosts tried in the ledger
#define HOSTS_MAX 8U  // for one guest
#define ALIKE     2   // other guests take at most this many times as long

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

static int64_t spare_of(const struct sched *sched, uint32_t parked)
{
    return (parked > 0 ? sched->settings.park_bound : 1) * sched_park_slot(sched);
}

int64_t sched_host_spare(const struct sched *sched, const struct sched_run *run)
{
    return spare_of(sched, parked_from(sched, run));
}

/* Regardless of how long it still needs, of how many GPUs it has, and of what runs beside it. */
static enum host_bar bar_of(const struct guest *guest, const struct sched_run *run)
{
    const struct sched *sched = guest->sched;
    uint32_t parked = parked_from(sched, run);
    if (run->is_giving_way)
        return HOST_LEAVING;
    if (class_priority(run->job->class) > class_priority(guest->class))
        return HOST_PRIORITY;
    if (sched_is_preferred(run->job->class, guest->class))
        return HOST_PREFERRED;
    if (sched_run_budget(sched, run) < guest->needs_ms + spare_of(sched, parked))
        return HOST_BOUND;
    if (parked >= sched->settings.park_layers)
        return HOST_LAYERS;
    if (sched_run_is_kept(sched, run))
        return HOST_NEW;
    return sched_run_can_park(sched, run) ? HOST_BARS : HOST_CANNOT_PARK;
}

static bool may_be_host(const struct guest *guest, const struct sched_run *run)
{
    return bar_of(guest, run) == HOST_BARS;
}

/* GPUs that the guest and waiting jobs like it could use, at most `most`. */
static uint32_t count_wanted(const struct guest *guest, uint32_t most)
{
    const struct queue_class *class = queue_first(&guest->sched->queue);
    uint64_t wanted = guest->class->key.request.gpus * (uint64_t)guest->class->length;
    for (unsigned i = 0; i < GUEST_HEADS && class != NULL && wanted < most; i++, class = queue_next(class))
        if (class != guest->class && class->horizon_ms / ALIKE <= guest->needs_ms &&
            sched_class_can_park(guest->sched, class))
            wanted += class->key.request.gpus * (uint64_t) class->length;
    return wanted < most ? (uint32_t)wanted : most;
}

/* `count`: of hosts. */
static bool is_worth(const struct guest *guest, const struct sched_run *run, uint32_t count)
{
    const struct sched *sched = guest->sched;
    int64_t share_ms = (run->expected_end_ms - sched->now_ms) / sched->settings.park_ratio / count;
    uint32_t gpus = (uint32_t)run->allocation.n_gpus;
    if (share_ms < guest->needs_ms || gpus <= guest->class->key.request.gpus)
        return share_ms >= guest->needs_ms;
    return share_ms >= guest->needs_ms * gpus / count_wanted(guest, gpus);
}

static bool can_host_alone(const struct guest *guest, const struct sched_run *run)
{
    return run->allocation.n_gpus >= guest->class->key.request.gpus && may_be_host(guest, run) &&
           is_worth(guest, run, 1);
}

/* The narrowest first. */
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

/* The best first, at most FITS_MAX. */
static size_t list_hosts(const struct guest *guest, struct sched_run *hosts[FITS_MAX])
{
    const struct sched *sched = guest->sched;
    size_t count = 0;
    for (size_t i = 0; i < sched->n_runs; i++) {
        struct sched_run *run = sched->runs[i];
        if (!can_host_alone(guest, run))
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

/* --- several hosts --- */

/* The widest first, then the one that needs longest. */
static int compare_narrow(const void *a, const void *b)
{
    const struct sched_run *left = *(struct sched_run *const *)a, *right = *(struct sched_run *const *)b;
    if (left->allocation.n_gpus != right->allocation.n_gpus)
        return left->allocation.n_gpus > right->allocation.n_gpus ? -1 : 1;
    if (left->expected_end_ms != right->expected_end_ms)
        return left->expected_end_ms > right->expected_end_ms ? -1 : 1;
    return (left->job->entry.job > right->job->entry.job) - (left->job->entry.job < right->job->entry.job);
}

/* The first worthwhile ones that suffice together with `free` GPUs. 0: not with this many hosts. */
static size_t pick(const struct guest *guest, struct sched_run *const *narrow, size_t n_narrow, uint32_t most,
    uint32_t free_gpus, struct sched_run *ret[TRIAL_MAX])
{
    size_t picked = 0;
    for (size_t i = 0; i < n_narrow && picked < most && free_gpus < guest->class->key.request.gpus; i++) {
        if (!is_worth(guest, narrow[i], most))
            continue;
        free_gpus += (uint32_t)narrow[i]->allocation.n_gpus;
        ret[picked++] = narrow[i];
    }
    return free_gpus >= guest->class->key.request.gpus ? picked : 0;
}

static size_t choose_several(const struct guest *guest, struct sched_run *ret[TRIAL_MAX])
{
    struct sched *sched = guest->sched;
    const struct sched_request *request = &guest->class->key.request;
    if (sched->cluster.n_nodes != 1 || sched->n_nodes == 0 || request->gpus < 2)
        return 0;
    const struct node_runs *runs = sched_node_runs(sched, 0);
    struct sched_run **narrow = xcalloc(runs->count + 1, sizeof(struct sched_run *));
    size_t n_narrow = 0, count = 0;
    for (size_t i = 0; i < runs->count; i++)
        if (runs->runs[i]->allocation.n_gpus < request->gpus && may_be_host(guest, runs->runs[i]))
            narrow[n_narrow++] = runs->runs[i];
    qsort(narrow, n_narrow, sizeof(struct sched_run *), compare_narrow);
    uint32_t free_gpus =
        fit_count(&sched->cluster, &sched->cluster.nodes[0], request, guest->fit, request->gpus);
    for (uint32_t most = 1; most <= HOSTS_MAX && most <= n_narrow && count == 0; most++) {
        count = pick(guest, narrow, n_narrow, most, free_gpus, ret);
        if (count > 0 && !sched_would_start(sched, guest->class, guest->fit, ret, count, guest->needs_ms))
            count = 0;
    }
    free(narrow);
    return count;
}

size_t sched_hosts_choose(const struct guest *guest, struct sched_run *ret[TRIAL_MAX])
{
    struct sched_run *hosts[FITS_MAX];
    size_t count = list_hosts(guest, hosts);
    for (size_t i = 0; i < count; i++)
        if (sched_would_start(guest->sched, guest->class, guest->fit, &hosts[i], 1, guest->needs_ms)) {
            ret[0] = hosts[i];
            return 1;
        }
    return choose_several(guest, ret);
}

/* --- why there is none --- */

static enum host_bar explain(const struct guest *guest, const struct sched_run *run)
{
    bool is_narrow = run->allocation.n_gpus < guest->class->key.request.gpus;
    enum host_bar bar = bar_of(guest, run);
    bool may_change = bar == HOST_NEW || bar == HOST_BOUND || bar == HOST_LAYERS;
    if (may_change && !sched_run_can_park(guest->sched, run))
        bar = HOST_CANNOT_PARK;
    if (bar > HOST_ENDS_SOON && !is_worth(guest, run, 1))
        return HOST_ENDS_SOON;
    if (is_narrow && (bar == HOST_BARS || guest->sched->cluster.n_nodes > 1))
        return HOST_NARROW;
    return bar == HOST_BARS ? HOST_NO_START : bar;
}

const struct sched_run *sched_hosts_nearest(
    const struct guest *guest, struct sched_run *const *runs, size_t count, enum host_bar *ret_bar)
{
    struct sched_run *hosts[TRIAL_MAX];
    const struct sched_run *nearest = NULL;
    if (sched_hosts_choose(guest, hosts) > 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        enum host_bar bar = runs[i]->allocation.n_gpus > 0 ? explain(guest, runs[i]) : HOST_BARS;
        bool is_nearer = nearest == NULL || bar > *ret_bar ||
                         (bar == *ret_bar && is_better(guest->sched, runs[i], nearest));
        if (bar == HOST_BARS || !is_nearer)
            continue;
        nearest = runs[i];
        *ret_bar = bar;
    }
    return nearest;
}
