/* SPDX-License-Identifier: MIT */
/* What happens to nodes, and what administrators and strangers do about them. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "box_lines.h"
#include "controller/core/state.h"

#define CUT_MAX_MS     9000 // of a connection: a lease ends after 4000
#define HELPER_MAX_MS  80   // to park a job
#define CPUS           2U
#define CPUS_PLAIN     8U // those of a parked job stay booked
#define HELPER_MILD_MS 15
#define AFTERMATH_MS   500 // of whatever happens to a node or its connection

static void on_agent_start(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    if (place->node.is_off || place->node.core != NULL)
        return;
    node_start_agent(&place->node);
    line_dial(place);
}

static void kill_agent(struct place *place)
{
    struct world *world = &place->box->world;
    if (place->node.core == NULL)
        return;
    node_kill_agent(&place->node);
    line_lose(place);
    place->box->tally.counts[TALLY_AGENT_DEATHS]++;
    world_later(world, world_between(world, 1, 300), on_agent_start, place, 0, NULL, NULL);
}

/* Who is stopped once more stays stopped until the later of the two ends, when its frames, hints and timers
 * come. */
static void freeze(struct place *place)
{
    struct world *world = &place->box->world;
    if (node_is_leaderless(&place->node))
        return; // it could not be adopted
    place->box->tally.counts[TALLY_AGENT_STOPS]++;
    int64_t until_ms = world->now_ms + world_between(world, 100, SILENCE_MAX_MS);
    if (until_ms > place->node.frozen_until_ms)
        place->node.frozen_until_ms = until_ms;
}

static void power_off(struct place *place)
{
    if (place->node.is_off)
        return;
    line_vanish(place);
    node_power_off(&place->node);
    place->box->tally.counts[TALLY_REBOOTS]++;
}

static void on_power(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct world *world = &place->box->world;
    node_power_on(&place->node);
    world_later(world, world_between(world, 1, 300), on_agent_start, place, 0, NULL, NULL);
}

static void reboot(struct place *place)
{
    struct world *world = &place->box->world;
    if (place->node.is_off)
        return;
    power_off(place);
    world_later(world, world_between(world, 10, SILENCE_MAX_MS), on_power, place, 0, NULL, NULL);
}

static bool has_fence(const struct place *place)
{
    const struct core *core = place->box->core;
    const struct core_node *node = core != NULL ? core_node_named(core, place->node.name) : NULL;
    return node != NULL && node->mark != NULL && node->mark->kind == CHANGE_NODE_FENCE;
}

/* An administrator who asks until he hears that it is done, and never again. */
static void on_fence(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct box *box = place->box;
    struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    int64_t now = box->world.now_ms;
    if (place->fence.is_fenced) {
        box->tally.counts[TALLY_FENCES]++;
        return;
    }
    if (box->core != NULL) {
        place->fence.is_fence = true;
        core_forget(box->core, &place->fence);
        core_fence(box->core, now, world_wall_ms(&box->world), &admin, place->node.name, "it has no power",
            &place->fence);
        box_turn(box);
    }
    world_later(&box->world, 1000, on_fence, place, 0, NULL, NULL);
}

/* An administrator who believes that a node is off, which is only cut off, and later puts it back. */
static void on_resume(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct box *box = place->box;
    struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    int64_t now = box->world.now_ms;
    if (place->is_gone)
        return; // that fence stays
    if (box->core != NULL && has_fence(place)) {
        core_drain(box->core, now, world_wall_ms(&box->world), &admin, place->node.name, NULL, 0, true, NULL);
        box_turn(box);
    }
    if (now < box->late_ms || box->core == NULL || has_fence(place))
        world_later(&box->world, world_between(&box->world, 500, 4000), on_resume, place, 0, NULL, NULL);
}

static void on_wrong_fence(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct box *box = place->box;
    struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    const struct core_node *known = box->core != NULL ? core_node_named(box->core, place->node.name) : NULL;
    int64_t now = box->world.now_ms;
    if (known == NULL || known->is_up || place->node.is_off || has_fence(place))
        return;
    for (const struct spooled *entry = place->node.spool; entry != NULL; entry = entry->next)
        box->tally.counts[TALLY_DISOWNED] += !entry->is_removed && entry->is_running;
    box->tally.counts[TALLY_FENCES_ALIVE]++;
    node_disown(&place->node, box->core->last_order);
    box_disturb(box, place, AFTERMATH_MS);
    core_fence(
        box->core, now, world_wall_ms(&box->world), &admin, place->node.name, "it seems to be off", NULL);
    box_turn(box);
    world_later(&box->world, world_between(&box->world, 0, 2000), on_resume, place, 0, NULL, NULL);
}

static void cut_off(struct place *place)
{
    struct world *world = &place->box->world;
    int64_t for_ms = world_between(world, 50, CUT_MAX_MS);
    if (place->line == NULL || place->node.is_off)
        return;
    place->cut_until_ms = world->now_ms + for_ms;
    line_cut(place);
    if (world_one_in(world, 3)) // else leases end
        world_later(world, world_between(world, 0, for_ms), on_wrong_fence, place, 0, NULL, NULL);
}

/* One node that never comes back, while there are others. */
static void leave_for_ever(struct place *place)
{
    struct box *box = place->box;
    for (size_t i = 0; i < box->n_places; i++)
        if (box->places[i].is_gone)
            return;
    if (box->n_places == 1 || place->node.is_off)
        return;
    place->is_gone = true;
    box->tally.counts[TALLY_NODES_GONE]++;
    power_off(place);
    world_later(&box->world, world_between(&box->world, 0, 10000), on_fence, place, 0, NULL, NULL);
}

static const struct core_node *known_node(const struct place *place)
{
    const struct core *core = place->box->core;
    return core != NULL ? core_node_named(core, place->node.name) : NULL;
}

/* An administrator who errs: a node that is up is not fenced. */
static void fence_alive(struct place *place)
{
    struct box *box = place->box;
    const struct core_node *known = known_node(place);
    struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    int64_t now = box->world.now_ms;
    if (known == NULL || !known->is_up || has_fence(place))
        return;
    core_fence(box->core, now, world_wall_ms(&box->world), &admin, place->node.name,
        "somebody thinks it is off", NULL);
    box_turn(box);
    if (has_fence(place))
        box_break(box, "a node was fenced that is up", 0);
    box->tally.counts[TALLY_FENCES_REFUSED]++;
}

/* Another machine with this one's name, and its key: a copied disk. While this one is up it stays out. */
static void meet_twin(struct place *place)
{
    struct box *box = place->box;
    const struct core_node *known = known_node(place);
    char boot[] = "boot of a copy";
    struct message_hello hello = {
        .protocol = LINK_PROTOCOL, .node = place->node.name, .boot_id = boot, .sent_ms = box->world.now_ms
    };
    struct error err = { 0 };
    if (known == NULL || !known->is_up)
        return;
    int64_t now = box->world.now_ms;
    if (core_link_up(box->core, now, world_wall_ms(&box->world), UINT32_MAX, &hello, &err) != -EBUSY)
        box_break(box, "another machine with a node's name was let in", 0);
    box_turn(box);
    box->tally.counts[TALLY_TWINS]++;
}

/* Somebody empties the spool of a node where nothing runs, while its agent is dead. */
static void wipe_spool(struct place *place)
{
    struct node *node = &place->node;
    if (node->core == NULL || !node_wipe(node))
        return;
    kill_agent(place);
    place->box->tally.counts[TALLY_WIPES]++;
}

static void kill_shepherd(struct place *place)
{
    place->box->tally.counts[TALLY_SHEPHERD_DEATHS] += node_kill_shepherd(&place->node);
}

static void end_power(struct place *place)
{
    world_one_in(&place->box->world, 4) ? leave_for_ever(place) : reboot(place);
}

void box_storm_place(struct box *box)
{
    static void (*const storms[])(struct place * place) = { // each as often as it stands here
        kill_agent, kill_agent, kill_agent, kill_agent, kill_shepherd, kill_shepherd, kill_shepherd,
        kill_shepherd, kill_shepherd, kill_shepherd, line_silence, line_silence, freeze, freeze, end_power,
        end_power, line_cut, line_cut, line_cut, line_cut, cut_off, cut_off, fence_alive, meet_twin,
        wipe_spool, wipe_spool
    };
    struct place *place = &box->places[world_random(&box->world) % box->n_places];
    size_t kind = world_random(&box->world) % (sizeof(storms) / sizeof(storms[0]));
    box_disturb(box, place, storms[kind] == line_silence ? SILENCE_MAX_MS : AFTERMATH_MS);
    storms[kind](place);
}

static const struct state_change *find_size(const struct box *box, const char *name)
{
    for (size_t i = 0; i < box->n_rows; i++)
        if (strcmp(box->rows[i].kind, CORE_NODE_SIZE) == 0 && strcmp(box->rows[i].key, name) == 0)
            return &box->rows[i];
    return NULL;
}

bool box_has_met_all(const struct box *box)
{
    for (size_t i = 0; i < box->n_places; i++)
        if (find_size(box, box->places[i].node.name) == NULL)
            return false;
    return true;
}

static void on_execution(void *arg, const struct spooled *entry)
{
    box_check_execution(((struct place *)arg)->box, entry);
}

static void on_part_gone(void *arg, const struct spooled *entry)
{
    box_miss_rank(((struct place *)arg)->box, entry);
}

static void on_disturbed(void *arg, int64_t for_ms)
{
    struct place *place = arg;
    box_disturb(place->box, place, for_ms);
}

/* A script resumes the nodes right after the restore, before all of them have connected. */
static void on_hasty_resume(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct box *box = place->box;
    struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    if (box->core == NULL) {
        world_later(&box->world, 10, on_hasty_resume, place, 0, NULL, NULL);
        return;
    }
    if (has_fence(place))
        return;
    core_drain(box->core, box->world.now_ms, world_wall_ms(&box->world), &admin, place->node.name, NULL, 0,
        true, NULL);
    box_turn(box);
}

void box_restore_places(struct box *box)
{
    bool is_hasty = world_one_in(&box->world, 2);
    for (size_t i = 0; i < box->n_places; i++) {
        struct place *place = &box->places[i];
        int64_t resume_ms = world_between(&box->world, 0, 300);
        if (is_hasty)
            world_later(&box->world, resume_ms, on_hasty_resume, place, 0, NULL, NULL);
        if (place->fence.is_fenced)
            world_later(&box->world, 1000, on_fence, place, 0, NULL, NULL);
        place->fence.is_fenced = false;
        place->was_new = place->node.epoch == 0;
    }
}

void box_open_places(struct box *box)
{
    box->n_places = 1 + world_random(&box->world) % PLACES_MAX;
    for (size_t i = 0; i < box->n_places; i++) {
        struct place *place = &box->places[i];
        place->box = box;
        node_init(&place->node, &box->world, i);
        place->node.has_long_jobs = box->are_plain;
        place->node.send = line_send;
        place->node.hang_up = line_hang_up;
        place->node.executed = on_execution;
        place->node.gone = on_part_gone;
        place->node.disturbed = on_disturbed;
        place->node.cpus = box->are_plain ? CPUS_PLAIN : CPUS;
        place->node.helper_max_ms = box->are_plain ? HELPER_MILD_MS : HELPER_MAX_MS;
        place->node.arg = place;
        node_start_agent(&place->node);
        line_dial(place);
    }
}

void box_close_places(struct box *box)
{
    for (size_t i = 0; i < box->n_places; i++)
        node_clear(&box->places[i].node);
    lines_free(box);
}
