/* SPDX-License-Identifier: MIT */
/*
 * Reservations made by administrators: GPUs that only some users' jobs may use for a time. The GPUs have the
 * times (struct cluster_booking), for fit.c; here they are created, ended, and returned if unused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/cluster_change.h"
#include "sched/sched_private.h"

static bool has_user(const struct sched_reservation *reservation, uint32_t uid)
{
    for (size_t i = 0; i < reservation->n_uids; i++)
        if (reservation->uids[i] == uid)
            return true;
    return false;
}

size_t sched_usable(const struct sched *sched, uint32_t uid, uint64_t *ids, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < sched->n_reservations && count < max; i++) {
        const struct sched_reservation *reservation = &sched->reservations[i];
        if (has_user(reservation, uid))
            ids[count++] = reservation->id;
    }
    return count;
}

const struct sched_reservation *sched_reservations(const struct sched *sched, size_t *ret_count)
{
    *ret_count = sched->n_reservations;
    return sched->reservations;
}

static bool overlaps(const struct cluster_gpu *gpu, int64_t from_ms, int64_t until_ms)
{
    for (size_t i = 0; i < gpu->n_bookings; i++)
        if (gpu->bookings[i].from_ms < until_ms && from_ms < gpu->bookings[i].until_ms)
            return true;
    return false;
}

/* Free of other reservations. */
static bool can_reserve(const struct sched *sched, const struct cluster_gpu *gpu,
    const struct sched_request *request, const struct sched_reservation *reservation)
{
    return gpu->is_known && cluster_gpu_suits(&sched->cluster, gpu, request) &&
           !overlaps(gpu, reservation->from_ms, reservation->until_ms);
}

/* GPUs without jobs are preferred. */
static bool is_free(const struct cluster_gpu *gpu)
{
    return cluster_gpu_is_whole(gpu) && (gpu->closed & ~(uint32_t)DEVICE_ALONE) == 0;
}

static bool has_gpu(const struct sched_reservation *reservation, uint32_t node, uint32_t gpu)
{
    for (size_t i = 0; i < reservation->n_gpus; i++)
        if (reservation->gpus[i].node == node && reservation->gpus[i].gpu == gpu)
            return true;
    return false;
}

static void add(struct sched_reservation *reservation, uint32_t node, uint32_t gpu)
{
    reservation->gpus = xreallocarray(reservation->gpus, reservation->n_gpus + 1, sizeof(*reservation->gpus));
    reservation->gpus[reservation->n_gpus++] = (struct alloc_gpu){ .node = node, .gpu = gpu };
}

static int choose_named(const struct sched *sched, const struct sched_request *request,
    struct sched_reservation *reservation, struct error *err)
{
    const struct cluster *cluster = &sched->cluster;
    for (size_t i = 0; i < request->n_picks; i++) {
        const char *name = request->picks[i].node;
        if (name == NULL && cluster->n_nodes != 1)
            return error_set(err, -EINVAL, "the node of GPU %u is missing: write node:%u",
                request->picks[i].index, request->picks[i].index);
        const struct cluster_node *node = name != NULL ? cluster_find(cluster, name) : &cluster->nodes[0];
        const struct cluster_gpu *gpu =
            node != NULL ? cluster_find_index(node, request->picks[i].index) : NULL;
        if (gpu == NULL)
            return error_set(err, -ERANGE, "there is no GPU %s:%u",
                name != NULL ? name : cluster->nodes[0].name, request->picks[i].index);
        if (overlaps(gpu, reservation->from_ms, reservation->until_ms))
            return error_set(
                err, -EBUSY, "GPU %s:%u is already reserved during that time", node->name, gpu->index);
        uint32_t at = (uint32_t)(gpu - node->gpus);
        if (!has_gpu(reservation, node->position, at))
            add(reservation, node->position, at);
    }
    return 0;
}

static int choose_any(const struct sched *sched, const struct sched_request *request,
    struct sched_reservation *reservation, struct error *err)
{
    const struct cluster *cluster = &sched->cluster;
    for (unsigned round = 0; round < 2; round++) // the free ones, then the others
        for (uint32_t n = 0; n < cluster->n_nodes && reservation->n_gpus < request->gpus; n++)
            for (uint32_t g = 0; g < cluster->nodes[n].n_gpus && reservation->n_gpus < request->gpus; g++) {
                const struct cluster_gpu *gpu = &cluster->nodes[n].gpus[g];
                if (is_free(gpu) == (round == 0) && can_reserve(sched, gpu, request, reservation))
                    add(reservation, n, g);
            }
    if (reservation->n_gpus >= request->gpus)
        return 0;
    return error_set(err, -EBUSY, "requested %u GPUs; %zu can be reserved for that time", request->gpus,
        reservation->n_gpus);
}

static void book(struct sched *sched, const struct sched_reservation *reservation)
{
    for (size_t i = 0; i < reservation->n_gpus; i++) {
        struct cluster_node *node = &sched->cluster.nodes[reservation->gpus[i].node];
        struct cluster_gpu *gpu = &node->gpus[reservation->gpus[i].gpu];
        gpu->bookings = xreallocarray(gpu->bookings, gpu->n_bookings + 1, sizeof(*gpu->bookings));
        size_t at = gpu->n_bookings++;
        while (at > 0 && gpu->bookings[at - 1].from_ms > reservation->from_ms) {
            gpu->bookings[at] = gpu->bookings[at - 1];
            at--;
        }
        gpu->bookings[at] =
            (struct cluster_booking){ reservation->id, reservation->from_ms, reservation->until_ms };
        cluster_touch(&sched->cluster, node);
    }
}

static void unbook(struct sched *sched, const struct sched_reservation *reservation)
{
    for (size_t i = 0; i < reservation->n_gpus; i++) {
        struct cluster_node *node = &sched->cluster.nodes[reservation->gpus[i].node];
        struct cluster_gpu *gpu = &node->gpus[reservation->gpus[i].gpu];
        size_t kept = 0;
        for (size_t k = 0; k < gpu->n_bookings; k++)
            if (gpu->bookings[k].reservation != reservation->id)
                gpu->bookings[kept++] = gpu->bookings[k];
        gpu->n_bookings = kept;
        cluster_touch(&sched->cluster, node);
    }
}

static bool is_returnable(const struct sched *sched, const struct sched_reservation *reservation)
{
    return sched->settings.unused_ms > 0 && !reservation->is_kept;
}

/* The next moment at which a reservation begins, ends, or has been unused for too long. */
static void arm(struct sched *sched)
{
    int64_t at = TIME_NEVER;
    for (size_t i = 0; i < sched->n_reservations; i++) {
        const struct sched_reservation *reservation = &sched->reservations[i];
        int64_t next = reservation->from_ms > sched->now_ms ? reservation->from_ms : reservation->until_ms;
        int64_t used =
            reservation->used_ms > reservation->from_ms ? reservation->used_ms : reservation->from_ms;
        if (is_returnable(sched, reservation) && reservation->from_ms <= sched->now_ms &&
            used + sched->settings.unused_ms < next)
            next = used + sched->settings.unused_ms;
        at = next < at ? next : at;
    }
    timers_set(&sched->timers, at, TIMER_RESERVATION, sched, &sched->reservation_timer);
}

int sched_reserve(struct sched *sched, int64_t now_ms, const struct sched_request *request,
    struct sched_reservation *reservation, struct error *err)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    int r = 0;
    if (reservation->until_ms <= reservation->from_ms)
        return error_set(err, -EINVAL, "a reservation must end after it begins");
    if (reservation->until_ms <= sched->now_ms)
        return error_set(err, -EINVAL, "a reservation cannot be in the past");
    if (reservation->n_uids == 0)
        return error_set(err, -EINVAL, "a reservation needs at least one user");
    if (request->gpus == 0)
        return error_set(err, -EINVAL, "a reservation needs at least one GPU");
    if (reservation->n_gpus == 0)
        r = request->n_picks > 0 ? choose_named(sched, request, reservation, err)
                                 : choose_any(sched, request, reservation, err);
    if (r < 0) {
        free(take_ptr(reservation->gpus));
        reservation->n_gpus = 0;
        return r;
    }
    sched->reservations =
        xreallocarray(sched->reservations, sched->n_reservations + 1, sizeof(*sched->reservations));
    struct sched_reservation *kept = &sched->reservations[sched->n_reservations++];
    *kept = *reservation;
    kept->name = xstrdup(reservation->name);
    kept->uids = xcalloc(reservation->n_uids, sizeof(*kept->uids));
    memcpy(kept->uids, reservation->uids, reservation->n_uids * sizeof(*kept->uids));
    kept->gpus = xcalloc(reservation->n_gpus, sizeof(*kept->gpus));
    memcpy(kept->gpus, reservation->gpus, reservation->n_gpus * sizeof(*kept->gpus));
    book(sched, kept);
    arm(sched);
    sched->is_dirty = true;
    return 0;
}

static void remove_at(struct sched *sched, size_t at)
{
    struct sched_reservation *reservation = &sched->reservations[at];
    unbook(sched, reservation);
    free(reservation->name);
    free(reservation->uids);
    free(reservation->gpus);
    sched->n_reservations--;
    memmove(reservation, reservation + 1, (sched->n_reservations - at) * sizeof(*reservation));
    sched->is_dirty = true;
}

int sched_unreserve(struct sched *sched, int64_t now_ms, uint64_t id)
{
    sched->now_ms = now_ms > sched->now_ms ? now_ms : sched->now_ms;
    for (size_t i = 0; i < sched->n_reservations; i++) {
        if (sched->reservations[i].id != id)
            continue;
        remove_at(sched, i);
        arm(sched);
        return 0;
    }
    return -ENOENT;
}

static bool is_booked(const struct cluster_gpu *gpu, uint64_t reservation)
{
    for (size_t i = 0; i < gpu->n_bookings; i++)
        if (gpu->bookings[i].reservation == reservation)
            return true;
    return false;
}

/* A job of one of its users runs on one of its GPUs. */
static bool is_of(
    const struct sched *sched, const struct sched_reservation *reservation, const struct sched_run *run)
{
    if (!has_user(reservation, run->job->class->key.uid))
        return false;
    for (size_t i = 0; i < run->allocation.n_gpus; i++) {
        const struct alloc_gpu *held = &run->allocation.gpus[i];
        if (is_booked(&sched->cluster.nodes[held->node].gpus[held->gpu], reservation->id))
            return true;
    }
    return false;
}

void sched_reservation_used(struct sched *sched, const struct sched_run *run)
{
    for (size_t i = 0; i < sched->n_reservations; i++)
        if (is_of(sched, &sched->reservations[i], run))
            sched->reservations[i].used_ms = sched->now_ms;
}

static bool is_in_use(const struct sched *sched, const struct sched_reservation *reservation)
{
    for (size_t i = 0; i < reservation->n_gpus; i++) {
        uint32_t node = reservation->gpus[i].node;
        if (node >= sched->n_nodes)
            continue;
        const struct node_runs *runs = &sched->nodes[node];
        for (size_t k = 0; k < runs->count; k++)
            if (is_of(sched, reservation, runs->runs[k]))
                return true;
    }
    return false;
}

void sched_reservation_timer(struct sched *sched)
{
    for (size_t i = sched->n_reservations; i-- > 0;) {
        struct sched_reservation *reservation = &sched->reservations[i];
        int64_t used =
            reservation->used_ms > reservation->from_ms ? reservation->used_ms : reservation->from_ms;
        bool has_begun = reservation->from_ms <= sched->now_ms;
        if (has_begun && is_in_use(sched, reservation))
            reservation->used_ms = used = sched->now_ms;
        bool is_unused = has_begun && is_returnable(sched, reservation) &&
                         used + sched->settings.unused_ms <= sched->now_ms;
        if (reservation->until_ms > sched->now_ms && !is_unused) {
            for (size_t k = 0; has_begun && k < reservation->n_gpus; k++)
                cluster_touch(&sched->cluster, &sched->cluster.nodes[reservation->gpus[k].node]);
            continue;
        }
        uint64_t id = reservation->id;
        remove_at(sched, i);
        if (sched->callbacks.unreserve != NULL)
            sched->callbacks.unreserve(sched->callbacks.arg, id);
    }
    sched->is_dirty = true;
    arm(sched);
}

void sched_calendar_clear(struct sched *sched)
{
    for (size_t i = 0; i < sched->n_reservations; i++) {
        free(sched->reservations[i].name);
        free(sched->reservations[i].uids);
        free(sched->reservations[i].gpus);
    }
    free(sched->reservations);
    sched->reservations = NULL;
    sched->n_reservations = 0;
}

void sched_calendar_copy(struct sched *to, const struct sched *from)
{
    for (size_t i = 0; i < from->n_reservations; i++) {
        struct sched_reservation copy = from->reservations[i];
        struct sched_request request = { .gpus = (uint32_t)copy.n_gpus };
        (void)sched_reserve(to, from->now_ms, &request, &copy, &(struct error){ 0 });
    }
}

static bool has_waiting_user(struct sched *sched, const struct sched_reservation *reservation)
{
    for (size_t i = 0; i < reservation->n_uids; i++)
        if (fairshare_account(&sched->fairshare, reservation->uids[i], ACCOUNT_USER)->waiting > 0)
            return true;
    return false;
}

void sched_keep_reservations(struct sched *sched, bool keeps_all)
{
    for (size_t i = 0; i < sched->n_reservations; i++) {
        struct sched_reservation *reservation = &sched->reservations[i];
        reservation->is_kept |= keeps_all || has_waiting_user(sched, reservation);
    }
    arm(sched);
}
