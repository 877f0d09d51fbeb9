/* SPDX-License-Identifier: MIT */
/*
 * Administrators: while the storm is on they pause GPUs, drain nodes and reserve GPUs, and nothing of that is
 * left afterwards. GPUs fail and are mended.
 */
#include <stdio.h>
#include <string.h>

#include "box.h"
#include "controller/core/state.h"

#define MILD        40   // one in so many, where jobs are to be parked by the rule
#define RESERVED_MS 5000 // at most, from now on

static const struct identity admin = { .is_known = true, .role = ROLE_ADMIN };

static bool has_marks(const struct core *core)
{
    const struct core_node *node = NULL;
    for (size_t i = 0; (node = core_node_at(core, i)) != NULL; i++) {
        if (node->mark != NULL)
            return true;
        for (size_t k = 0; k < node->n_gpus; k++)
            if (node->gpus[k].mark != NULL || node->gpus[k].fault != NULL)
                return true;
    }
    return false;
}

/* All GPUs are back after the storm. */
static void on_pause(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    char name[16];
    char *items[] = { name, NULL };
    struct strings gpus = { .items = items, .count = 1 };
    for (uint32_t i = 0; box->core != NULL && i < box->n_places * NODE_GPUS; i++) {
        (void)snprintf(name, sizeof(name), "n%u:%u", i / NODE_GPUS, i % NODE_GPUS);
        int64_t now = box->world.now_ms;
        bool acts = !box->is_storm || world_one_in(&box->world, box->are_plain ? MILD : 4);
        if (acts)
            core_pause(box->core, now, world_wall_ms(&box->world), &admin, &gpus, "for a while", 0,
                !box->is_storm || world_one_in(&box->world, 2) ? GPU_ACTION_RESUME : GPU_ACTION_PAUSE, NULL);
        if (acts)
            box_disturb(box, &box->places[i / NODE_GPUS], 0);
    }
    box_turn(box);
    /* What a node tells that comes back late can drain a GPU once more. */
    bool may_change = box->world.now_ms < box->late_ms;
    if (may_change || box->core == NULL || has_marks(box->core))
        world_later(&box->world, world_between(&box->world, 100, 3000), on_pause, box, 0, NULL, NULL);
}

static void ail(struct place *place)
{
    node_ail(&place->node);
    box_disturb(place->box, place, 0);
}

/* GPUs fail, vanish and come back while the storm is on; afterwards they are well. */
static void on_sample(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    for (size_t i = 0; i < box->n_places; i++) {
        struct node *node = &box->places[i].node;
        if (!box->is_storm)
            node_heal(node);
        else if (world_one_in(&box->world, box->are_plain ? 3 * MILD : 3))
            ail(&box->places[i]);
        node_sample(node);
    }
    world_later(&box->world, box->is_storm ? 200 : 2000, on_sample, box, 0, NULL, NULL);
}

static void on_drain(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    bool is_left = false;
    for (size_t i = 0; box->core != NULL && i < box->n_places; i++) {
        const char *name = box->places[i].node.name;
        const struct core_node *node = core_node_named(box->core, name);
        const struct cluster_change *mark = node != NULL ? node->mark : NULL;
        bool is_drained = mark != NULL && mark->kind == CHANGE_NODE_DRAIN;
        bool is_wanted = box->is_storm &&
                         (is_drained ? world_one_in(&box->world, 2)
                                     : mark == NULL && world_one_in(&box->world, box->are_plain ? MILD : 4));
        if (is_wanted != is_drained)
            box_disturb(box, &box->places[i], 0);
        if (is_wanted != is_drained)
            core_drain(box->core, box->world.now_ms, world_wall_ms(&box->world), &admin, name, "a new kernel",
                0, !is_wanted, NULL);
        is_left |= is_drained;
    }
    box_turn(box);
    /* A node that comes back late may be held because the store was restored. */
    if (is_left || box->world.now_ms < box->late_ms || box->core == NULL)
        world_later(&box->world, world_between(&box->world, 100, 2000), on_drain, box, 0, NULL, NULL);
}

/* For some of the clients, at once or soon. What cannot be reserved is refused. */
static void reserve(struct box *box)
{
    int64_t wall_ms = world_wall_ms(&box->world);
    char some[] = "1000", others[] = "1001", name[] = "a course", gpus[] = "n0:0,2";
    struct cluster_change reservation = { .users = world_one_in(&box->world, 2) ? some : others,
        .text = name };
    reservation.from_ms = world_one_in(&box->world, 2) ? 0 : wall_ms + world_between(&box->world, 0, 1000);
    reservation.until_ms = wall_ms + world_between(&box->world, 1100, 4000);
    reservation.gpus = (uint32_t)world_between(&box->world, 1, 4);
    reservation.gpu_ids = world_one_in(&box->world, 3) ? gpus : NULL;
    if (reservation.gpu_ids != NULL)
        reservation.gpus = 0;
    box_disturb(box, NULL, RESERVED_MS);
    core_reserve(box->core, box->world.now_ms, wall_ms, &admin, &reservation, NULL);
}

static void on_reserve(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    size_t count = 0;
    const struct sched_reservation *first = box->core != NULL ? core_reservations(box->core, &count) : NULL;
    if (count > 0 && (!box->is_storm || world_one_in(&box->world, 4)))
        core_unreserve(box->core, box->world.now_ms, world_wall_ms(&box->world), &admin, first->id, NULL);
    else if (box->core != NULL && box->is_storm && (!box->are_plain || world_one_in(&box->world, MILD / 2)))
        reserve(box);
    box_turn(box);
    if (count > 0 || box->world.now_ms < box->late_ms || box->core == NULL)
        world_later(&box->world, world_between(&box->world, 100, 2000), on_reserve, box, 0, NULL, NULL);
}

void box_open_admins(struct box *box)
{
    world_later(&box->world, 700, on_pause, box, 0, NULL, NULL);
    world_later(&box->world, 600, on_sample, box, 0, NULL, NULL);
    world_later(&box->world, 800, on_drain, box, 0, NULL, NULL);
    world_later(&box->world, 900, on_reserve, box, 0, NULL, NULL);
}
