/* SPDX-License-Identifier: MIT */
/* Reservations: GPUs for some users for some time. The scheduler manages them. The event that created one is
 * a row of the store, from which a start restores it with the chosen GPUs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/marks.h"
#include "controller/core/state.h"
#include "sched/from_record.h"

const struct sched_reservation *core_reservations(const struct core *core, size_t *ret_count)
{
    return sched_reservations(core->sched, ret_count);
}

char *core_gpu_name(const struct core *core, const struct alloc_gpu *gpu)
{
    const struct cluster_node *node = &sched_cluster(core->sched)->nodes[gpu->node];
    return xasprintf("%s:%u", node->name, node->gpus[gpu->gpu].index);
}

char *core_gpu_list(const struct core *core, const struct alloc_gpu *gpus, size_t count)
{
    const struct cluster *cluster = sched_cluster(core->sched);
    struct buffer out = { 0 };
    for (size_t i = 0, next = 0; i < count; i = next) {
        const struct cluster_node *node = &cluster->nodes[gpus[i].node];
        uint32_t first = node->gpus[gpus[i].gpu].index, last = first;
        bool is_same = i > 0 && gpus[i - 1].node == gpus[i].node;
        for (next = i + 1; next < count && gpus[next].node == gpus[i].node; next++) {
            if (node->gpus[gpus[next].gpu].index != last + 1)
                break;
            last++;
        }
        if (is_same)
            buffer_printf(&out, ",%" PRIu32, first);
        else
            buffer_printf(&out, "%s%s:%" PRIu32, i > 0 ? ";" : "", node->name, first);
        if (last > first)
            buffer_printf(&out, last == first + 1 ? ",%" PRIu32 : "-%" PRIu32, last);
    }
    return out.length > 0 ? buffer_take(&out) : NULL;
}

/* The chosen GPUs, for the log and the next start: "node:0;node:1" and their UUIDs in the same order. */
static void write_gpus(
    const struct core *core, const struct sched_reservation *reservation, struct cluster_change *change)
{
    const struct cluster *cluster = sched_cluster(core->sched);
    struct cluster_device *devices = xcalloc(reservation->n_gpus + 1, sizeof(*devices));
    for (size_t i = 0; i < reservation->n_gpus; i++) {
        const struct cluster_node *node = &cluster->nodes[reservation->gpus[i].node];
        const struct cluster_gpu *gpu = &node->gpus[reservation->gpus[i].gpu];
        devices[i] = (struct cluster_device){ .index = gpu->index, .uuid = xstrdup(gpu->uuid) };
    }
    free(change->gpu_ids);
    change->gpu_ids = core_gpu_list(core, reservation->gpus, reservation->n_gpus);
    change->devices = (struct record_list){ .items = devices, .count = reservation->n_gpus };
    change->gpus = (uint32_t)reservation->n_gpus;
}

static int reserve(
    struct core *core, const struct cluster_change *asked, struct cluster_change *change, struct error *err)
{
    struct job_ask ask = { .gpus = asked->gpus, .gpu_ids = asked->gpu_ids }; // borrowed
    _cleanup_(request_clear) struct sched_request request = { 0 };
    _cleanup_(reservation_clear) struct sched_reservation reservation = {
        .id = core->last_reservation + 1,
        .name = xstrdup(asked->text != NULL ? asked->text : ""),
        .from_ms = asked->from_ms > core->now_ms ? asked->from_ms : core->now_ms,
        .until_ms = asked->until_ms,
    };
    int r = 0;
    if (asked->from_ms != 0 && asked->from_ms < core->now_ms - 60 * 1000)
        r = error_set(err, -EINVAL, "a reservation cannot begin in the past");
    if (r == 0)
        r = reservation_read_users(&reservation, asked->users, err);
    if (r == 0)
        r = request_from_ask(&ask, &request, err);
    if (r == 0)
        r = sched_reserve(core->sched, core->now_ms, &request, &reservation, err);
    if (r == -EBUSY)
        (void)error_hint(err, "list reservations with mgpu reserve list");
    if (r == 0) {
        core->last_reservation = reservation.id;
        record_copy(&cluster_change_record, change, asked);
        change->kind = CHANGE_RESERVE;
        change->reservation = reservation.id;
        change->from_ms = reservation.from_ms;
        write_gpus(core, &reservation, change);
    }
    return r;
}

static void row_key(uint64_t reservation, char key[24])
{
    (void)snprintf(key, 24, "%" PRIu64, reservation);
}

void core_reserve(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct cluster_change *asked, void *request)
{
    struct core_answer answer = { 0 };
    struct cluster_change change = { 0 };
    char key[24];
    core_begin(core, boot_ms, wall_ms);
    if (!core_may(who, ACTION_MANAGE, NULL))
        answer.code = error_set(&answer.err, -EPERM, "only operators may reserve GPUs");
    else
        answer.code = reserve(core, asked, &change, &answer.err);
    if (answer.code == 0) {
        change.uid = who->uid;
        answer.job = change.reservation;
        row_key(change.reservation, key);
        core_change_cluster(core, &change);
        core_put_change(core, "reservation", key, &change);
    }
    cluster_change_clear(&change);
    core_reply(core, request, &answer);
}

/* The scheduler has already removed it. */
static void note_unreserved(struct core *core, uint64_t reservation, uint32_t uid, char *why)
{
    struct cluster_change change = {
        .kind = CHANGE_UNRESERVE, .uid = uid, .reservation = reservation, .text = why
    };
    char key[24];
    row_key(reservation, key);
    core_change_cluster(core, &change);
    store_batch_remove(core_batch(core)->changes, "reservation", key);
}

static void on_unreserved(struct core *core, uint64_t reservation)
{
    char why[] = "its time has ended, or it was unused";
    note_unreserved(core, reservation, core->options.admin_uid, why);
}

void core_unreserve(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t reservation, void *request)
{
    struct core_answer answer = { .job = reservation };
    core_begin(core, boot_ms, wall_ms);
    if (!core_may(who, ACTION_MANAGE, NULL))
        answer.code = error_set(&answer.err, -EPERM, "only operators may end a reservation");
    else if (sched_unreserve(core->sched, core->now_ms, reservation) < 0)
        answer.code = error_set(&answer.err, -ENOENT, "there is no reservation %" PRIu64, reservation);
    else
        note_unreserved(core, reservation, who->uid, NULL);
    core_reply(core, request, &answer);
}

/* Its GPUs are known by name before their nodes have reported. */
static int load(struct core *core, const struct cluster_change *change, struct error *err)
{
    _cleanup_(reservation_clear) struct sched_reservation reservation;
    if (change->reservation > core->last_reservation)
        core->last_reservation = change->reservation;
    int r = reservation_of_change(sched_cluster(core->sched), change, &reservation, err);
    struct sched_request request = { .gpus = (uint32_t)reservation.n_gpus };
    if (r == 0)
        r = sched_reserve(core->sched, 0, &request, &reservation, err);
    return r;
}

static const struct core_kind kinds[] = { { .kind = "reservation", .load_change = load }, { 0 } };

const struct core_concern core_concern_reservations = {
    .name = "reservations",
    .kinds = kinds,
    .unreserved = on_unreserved,
};
