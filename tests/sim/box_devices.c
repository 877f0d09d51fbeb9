/* SPDX-License-Identifier: MIT */
/* What must be true of GPUs and nodes that somebody, or mgpud itself, keeps from jobs: none gets them. Seen
 * from the events. */
#include <stdlib.h>

#include "box.h"

static bool is_told_of(const struct job_event *event, const char *uuid)
{
    const struct cluster_change *change = event->change.items;
    return event->type == EVENT_CLUSTER && event->change.count == 1 && text_equal(change->uuid, uuid);
}

/* From the event that drains or pauses a GPU to the one that puts it back, nothing is allocated there. */
static void judge_gpu(struct box *box, const char *uuid)
{
    bool is_drained = false, is_paused = false;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct gpu_grant *grants = event->gpus.items;
        if (is_told_of(event, uuid)) {
            uint32_t kind = ((const struct cluster_change *)event->change.items)->kind;
            is_drained = kind == CHANGE_GPU_DRAIN ||
                         (is_drained && kind != CHANGE_GPU_RETURN && kind != CHANGE_GPU_RESUME);
            is_paused = kind == CHANGE_GPU_PAUSE || (is_paused && kind != CHANGE_GPU_RESUME);
            box->tally.counts[TALLY_GPU_RETURNS] += kind == CHANGE_GPU_RETURN;
            box->tally.counts[TALLY_GPU_DRAINS] += kind == CHANGE_GPU_DRAIN;
        }
        bool is_given = event->type == EVENT_ALLOCATED || event->type == EVENT_RESTORING;
        for (size_t k = 0; is_given && k < event->gpus.count; k++)
            if (is_drained && text_equal(grants[k].uuid, uuid))
                box_break(box, "it got a GPU that was drained", event->job);
        for (size_t k = 0; is_given && k < event->gpus.count; k++)
            if (is_paused && text_equal(grants[k].uuid, uuid))
                box_break(box, "it got a GPU that was paused", event->job);
    }
}

static bool is_on(const struct job_event *event, const char *name)
{
    const struct job_node *nodes = event->nodes.items;
    for (size_t i = 0; i < event->nodes.count; i++)
        if (text_equal(nodes[i].name, name))
            return true;
    return event->nodes.count == 0 && text_equal(event->node, name);
}

/* The numbers go on far above, from where the store is known to be an old one. */
static bool is_restored(const struct box *box, size_t at)
{
    return at > 0 && box->events[at].event.seq > box->events[at - 1].event.seq + RESTORE_GAP;
}

/* From its drain or fence, or from a restore, until it is resumed, nothing is allocated on a node. A node
 * that no mgpud had accepted by then has done nothing that the store lacks. */
static void judge_drain(struct box *box, const char *name, bool was_new)
{
    bool is_drained = false;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct cluster_change *change = event->change.items;
        is_drained |= is_restored(box, i) && !was_new;
        if (event->type == EVENT_CLUSTER && change->uuid == NULL && text_equal(change->node, name))
            is_drained = change->kind == CHANGE_NODE_DRAIN || change->kind == CHANGE_NODE_FENCE ||
                         (is_drained && change->kind != CHANGE_NODE_RESUME);
        if (event->type == EVENT_ALLOCATED && is_drained && is_on(event, name))
            box_break(box, "it got a node that was drained", event->job);
    }
}

static bool is_of(const struct cluster_change *reservation, const struct job_event *event)
{
    const struct cluster_device *devices = reservation->devices.items;
    const struct gpu_grant *grants = event->gpus.items;
    for (size_t i = 0; i < reservation->devices.count; i++)
        for (size_t k = 0; k < event->gpus.count; k++)
            if (text_equal(devices[i].uuid, grants[k].uuid))
                return true;
    return false;
}

static uint32_t owner_of(const struct box *box, uint64_t job)
{
    for (size_t i = 0; i < box->n_events; i++)
        if (box->events[i].event.type == EVENT_SUBMITTED && box->events[i].event.job == job)
            return box->events[i].event.uid;
    return 0;
}

/* The event at `at` reserves GPUs: no other job gets them in that time. */
static void judge_reservation(struct box *box, size_t at)
{
    const struct cluster_change *reservation = box->events[at].event.change.items;
    for (size_t i = at + 1; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct cluster_change *change = event->change.items;
        bool is_change = event->type == EVENT_CLUSTER && change->reservation == reservation->reservation;
        if (is_change && change->kind == CHANGE_UNRESERVE)
            return;
        bool is_given = event->type == EVENT_ALLOCATED || event->type == EVENT_RESTORING;
        bool is_then = event->wall_ms >= reservation->from_ms && event->wall_ms < reservation->until_ms;
        if (is_given && is_then && is_of(reservation, event) &&
            strtoul(reservation->users, NULL, 10) != owner_of(box, event->job))
            box_break(box, "it got a GPU that was reserved for another user", event->job);
    }
}

void box_judge_devices(struct box *box)
{
    for (size_t i = 0; i < box->n_places; i++) {
        judge_drain(box, box->places[i].node.name, box->places[i].was_new);
        for (uint32_t index = 0; index < NODE_GPUS; index++) {
            char uuid[16];
            node_gpu_uuid(&box->places[i].node, index, uuid);
            judge_gpu(box, uuid);
        }
    }
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct cluster_change *change = event->change.items;
        if (event->type == EVENT_CLUSTER && change->kind == CHANGE_RESERVE)
            judge_reservation(box, i);
    }
}
