/* SPDX-License-Identifier: MIT */
/* Changes of the cluster: nodes, administrators' marks, reservations. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "lab/sim/replay/private.h"
#include "sched/from_record.h"

static struct cluster_change *find_mark(const struct replay *replay, const char *node, const char *uuid)
{
    for (size_t i = 0; i < replay->n_marks; i++)
        if (text_equal(replay->marks[i].node, node) && text_equal(replay->marks[i].uuid, uuid))
            return &replay->marks[i];
    return NULL;
}

static void keep(struct cluster_change **list, size_t *count, const struct cluster_change *change)
{
    *list = xreallocarray(*list, *count + 1, sizeof(**list));
    record_copy(&cluster_change_record, &(*list)[(*count)++], change);
}

static void drop(struct cluster_change *list, size_t *count, size_t at)
{
    cluster_change_clear(&list[at]);
    list[at] = list[--*count];
}

void replay_note_change(struct replay *replay, const struct cluster_change *change)
{
    struct cluster_change *mark;
    switch (change->kind) {
    case CHANGE_GPU_PAUSE:
    case CHANGE_NODE_DRAIN:
    case CHANGE_NODE_FENCE:
    case CHANGE_GPU_RESUME:
    case CHANGE_NODE_RESUME:
        mark = find_mark(replay, change->node, change->uuid);
        if (mark != NULL)
            drop(replay->marks, &replay->n_marks, (size_t)(mark - replay->marks));
        if (change->kind == CHANGE_GPU_PAUSE || change->kind == CHANGE_NODE_DRAIN ||
            change->kind == CHANGE_NODE_FENCE)
            keep(&replay->marks, &replay->n_marks, change);
        return;
    case CHANGE_NODE_UP:
        for (size_t i = replay->n_sizes; i-- > 0;)
            if (text_equal(replay->sizes[i].node, change->node))
                drop(replay->sizes, &replay->n_sizes, i);
        keep(&replay->sizes, &replay->n_sizes, change);
        return;
    case CHANGE_NODE_FORGET:
        for (size_t i = replay->n_sizes; i-- > 0;)
            if (text_equal(replay->sizes[i].node, change->node))
                drop(replay->sizes, &replay->n_sizes, i);
        return;
    case CHANGE_RESERVE: keep(&replay->reservations, &replay->n_reservations, change); return;
    case CHANGE_UNRESERVE:
        for (size_t i = replay->n_reservations; i-- > 0;)
            if (replay->reservations[i].reservation == change->reservation)
                drop(replay->reservations, &replay->n_reservations, i);
        return;
    default: return;
    }
}

static int on_node_up(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    struct cluster *cluster = sched_cluster(replay->sched);
    const struct cluster_device *devices = change->devices.items;
    size_t count = change->devices.count;
    for (size_t i = 0; i < count; i++)
        if (devices[i].uuid == NULL)
            return error_set(err, -EPROTO, "device %zu of node %.60s has no uuid", i, change->node);
    struct cluster_node *node = cluster_take_node(cluster, change);
    (void)cluster_take_node(sched_known(replay->sched), change);
    for (size_t i = 0; i < count; i++)
        cluster_find_gpu(node, devices[i].uuid)->is_paused =
            find_mark(replay, change->node, devices[i].uuid) != NULL;
    node->is_drained = find_mark(replay, change->node, NULL) != NULL;
    cluster_touch(cluster, node);
    return 0;
}

static int on_node_down(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    struct cluster *cluster = sched_cluster(replay->sched);
    struct cluster_node *node = cluster_find(cluster, change->node);
    if (node == NULL)
        return 0; // it disconnected before its orphaned attempts had ended
    node->is_up = false;
    cluster_touch(cluster, node);
    return 0;
}

static int on_node_forget(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    cluster_remove_node(sched_cluster(replay->sched), change->node);
    cluster_remove_node(sched_known(replay->sched), change->node);
    return 0;
}

static int on_mark(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    struct cluster *cluster = sched_cluster(replay->sched);
    struct cluster_node *node = cluster_find(cluster, change->node);
    if (node == NULL)
        return 0; // it is marked when it comes
    struct cluster_gpu *gpu = change->uuid != NULL ? cluster_find_gpu(node, change->uuid) : NULL;
    bool is_set = find_mark(replay, change->node, change->uuid) != NULL;
    if (change->uuid == NULL)
        node->is_drained = is_set;
    else if (gpu != NULL)
        gpu->is_paused = is_set;
    cluster_touch(cluster, node);
    return 0;
}

/* --- reservations --- */

/* `now_ms` 0: at a start, when its GPUs are known by name before their nodes have reported. */
static int reserve(
    struct replay *replay, const struct cluster_change *change, int64_t now_ms, struct error *err)
{
    _cleanup_(reservation_clear) struct sched_reservation reservation;
    int r = reservation_of_change(sched_cluster(replay->sched), change, &reservation, err);
    struct sched_request request = { .gpus = (uint32_t)reservation.n_gpus };
    if (r == 0)
        r = sched_reserve(replay->sched, now_ms, &request, &reservation, err);
    return r;
}

int replay_load_reservation(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    return reserve(replay, change, 0, err);
}

static int on_reserve(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    return reserve(replay, change, replay->at_ms, err);
}

static int on_unreserve(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    if (sched_unreserve(replay->sched, replay->at_ms, change->reservation) == 0)
        return 0;
    return error_set(err, -EPROTO, "unknown reservation %" PRIu64, change->reservation);
}

/* Its effects are part of the node's devices. */
static int on_remark(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    return 0;
}

/* Once a test has passed, commands that refused are asked again. */
static int on_node_parking(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    if (change->parks)
        park_refusals_clear(&replay->refusals);
    return 0;
}

/* Starts fail there, or no longer. */
static int on_node_bar(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    if (change->until_ms > 0)
        sched_bar(replay->sched, replay->at_ms, change->node, change->uid, change->until_ms, "starts fail");
    else
        sched_unbar(replay->sched, replay->at_ms, change->node, change->uid);
    return 0;
}

int replay_change(struct replay *replay, const struct cluster_change *change, struct error *err)
{
    static int (*const makers[CHANGE_KINDS])(
        struct replay *, const struct cluster_change *, struct error *) = {
        [CHANGE_NODE_UP] = on_node_up,
        [CHANGE_NODE_DOWN] = on_node_down,
        [CHANGE_GPU_PAUSE] = on_mark,
        [CHANGE_GPU_RESUME] = on_mark,
        [CHANGE_NODE_DRAIN] = on_mark,
        [CHANGE_NODE_RESUME] = on_mark,
        [CHANGE_RESERVE] = on_reserve,
        [CHANGE_UNRESERVE] = on_unreserve,
        [CHANGE_GPU_POLICY] = on_remark,
        [CHANGE_GPU_DRAIN] = on_remark,
        [CHANGE_GPU_RETURN] = on_remark,
        [CHANGE_NODE_UNREACHABLE] = on_remark,
        [CHANGE_NODE_FENCE] = on_mark,
        [CHANGE_NODE_JOIN] = on_remark,
        [CHANGE_NODE_BACK] = on_remark,
        [CHANGE_NODE_FORGET] = on_node_forget,
        [CHANGE_NODE_BAR] = on_node_bar,
        [CHANGE_JOB_REFUSED] = replay_refused,
        [CHANGE_NODE_PARKING] = on_node_parking,
        [CHANGE_PARK_BAR] = replay_park_bar,
    };
    replay_note_change(replay, change);
    return makers[change->kind](replay, change, err);
}
