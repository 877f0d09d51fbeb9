/* SPDX-License-Identifier: MIT */
/*
 * Administrators: while the storm is on they pause GPUs, drain nodes and reserve GPUs, and nothing of that is
 * left afterwards. GPUs fail and are mended.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "box.h"
#include "controller/core/state.h"

static const struct identity admin = { .is_known = true, .role = ROLE_ADMIN };

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
        if (!box->is_storm || world_one_in(&box->world, 4))
            core_pause(box->core, now, world_wall_ms(&box->world), &admin, &gpus, "for a while", 0,
                !box->is_storm || world_one_in(&box->world, 2) ? GPU_WISH_RESUME : GPU_WISH_PAUSE, NULL);
    }
    box_turn(box);
    /* What a node tells that comes back late can drain a GPU once more. */
    bool may_change = box->world.now_ms < box->late_ms;
    if (may_change || box->core == NULL || box->core->marks.count > 0 || box->core->faults.count > 0)
        world_later(&box->world, world_between(&box->world, 100, 3000), on_pause, box, 0, NULL, NULL);
}

/* GPUs fail, vanish and come back while the storm is on; afterwards they are well. */
static void on_sample(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    for (size_t i = 0; i < box->n_places; i++) {
        struct node *node = &box->places[i].node;
        if (!box->is_storm)
            node_heal(node);
        else if (world_one_in(&box->world, 3))
            node_ail(node);
        node_sample(node);
    }
    world_later(&box->world, box->is_storm ? 200 : 2000, on_sample, box, 0, NULL, NULL);
}

void box_open_admins(struct box *box)
{
    world_later(&box->world, 700, on_pause, box, 0, NULL, NULL);
    world_later(&box->world, 600, on_sample, box, 0, NULL, NULL);
}
