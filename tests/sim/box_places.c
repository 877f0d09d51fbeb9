/* SPDX-License-Identifier: MIT */
/*
 * Nodes and the connections to them. A connection is a line: in each direction frames arrive in order, each
 * after a while, or not at all once it broke. The two ends hear of its end at different times, so that a node
 * may have dialled again while its old line is still open at the controller and old frames are still on their
 * way.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "box.h"

#define DELAY_MAX_MS   3    // of a frame
#define LATE_MAX_MS    3000 // after that the other end has noticed too
#define SILENCE_MAX_MS 5000

enum direction { TO_CONTROLLER, TO_AGENT };

struct frame {
    struct buffer bytes;
    const struct record_type *type;
    struct frame *next;
};

struct line {
    struct place *place;
    uint32_t number; // the controller's name for it
    bool is_open;    // at the controller
    struct frame *first[2], *last[2];
    int64_t clear_ms[2]; // nothing arrives earlier
    struct line *next;
};

static void frame_free(struct frame *frame)
{
    buffer_clear(&frame->bytes);
    free(frame);
}

static struct frame *take_frame(struct line *line, enum direction direction)
{
    struct frame *frame = line->first[direction];
    line->first[direction] = frame->next;
    if (frame->next == NULL)
        line->last[direction] = NULL;
    return frame;
}

/* --- the ends of a line --- */

static void dial(struct place *place);

static void on_controller_hears(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct line *line = object;
    if (!line->is_open)
        return;
    line->is_open = false;
    core_link_down(box->core, box->world.now_ms, box->world.now_ms, line->number);
    box_turn(box);
}

static void on_agent_hears(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct world *world = &place->box->world;
    if (place->line != object)
        return;
    if (place->node.core != NULL && node_is_frozen(&place->node)) {
        world_later(
            world, place->node.frozen_until_ms - world->now_ms, on_agent_hears, place, number, object, NULL);
        return;
    }
    place->line = NULL;
    if (place->node.core != NULL)
        agent_core_link_down(place->node.core);
    dial(place);
}

/* Now, or when a timer of the kernel says so. */
static void hear(struct box *box, world_fn hears, void *arg, struct line *line)
{
    if (world_one_in(&box->world, 3))
        world_later(
            &box->world, world_between(&box->world, 1, LATE_MAX_MS), hears, arg, line->number, line, NULL);
    else
        hears(arg, line->number, line);
}

static void cut(struct place *place)
{
    struct box *box = place->box;
    struct line *line = place->line;
    if (line == NULL)
        return;
    hear(box, on_controller_hears, box, line);
    hear(box, on_agent_hears, place, line);
}

/* --- frames --- */

static void on_frame(void *arg, uint64_t direction, void *object);

static int tell_controller(struct box *box, const struct line *line, const struct record_type *type,
    const void *message, struct error *err)
{
    int64_t now = box->world.now_ms;
    if (type->id == MESSAGE_HELLO)
        return core_link_up(box->core, now, now, line->number, message, err);
    return core_link_message(box->core, now, now, line->number, type->id, message, err);
}

/* What comes for a stopped agent waits for it. */
static bool is_kept_waiting(struct line *line, enum direction direction)
{
    struct world *world = &line->place->box->world;
    const struct node *node = &line->place->node;
    if (direction != TO_AGENT || line->place->line != line || node->core == NULL || !node_is_frozen(node))
        return false;
    line->clear_ms[direction] = node->frozen_until_ms;
    world_later(
        world, node->frozen_until_ms - world->now_ms, on_frame, NULL, (uint64_t)direction, line, NULL);
    return true;
}

static void deliver(
    struct line *line, enum direction direction, const struct record_type *type, const void *message)
{
    struct box *box = line->place->box;
    struct node *node = &line->place->node;
    struct error err = { 0 };
    if (direction == TO_CONTROLLER && line->is_open) {
        bool is_newest = line->place->line == line;
        int r = tell_controller(box, line, type, message, &err);
        box_turn(box);
        if (r < 0 && is_newest)
            box_break(box, "the controller refused a frame", 0);
        else if (r < 0)
            on_controller_hears(box, 0, line); // it closes what it does not understand
    } else if (direction == TO_AGENT && line->place->line == line && node->core != NULL) {
        if (agent_core_message(node->core, box->world.now_ms, type->id, message, &err) < 0)
            box_break(box, "the agent refused a frame", 0);
    }
    if (box->broken != NULL && err.message[0] != '\0')
        (void)fprintf(stderr, "%s\n", err.message);
}

static void on_frame(void *arg, uint64_t direction, void *object)
{
    struct line *line = object;
    if (is_kept_waiting(line, (enum direction)direction))
        return;
    struct frame *frame = take_frame(line, (enum direction)direction);
    struct error err = { 0 };
    void *message = xcalloc(1, frame->type->size);
    if (record_decode(frame->type, frame->bytes.bytes, frame->bytes.length, message, &err) < 0)
        box_break(line->place->box, "a frame cannot be read", 0);
    deliver(line, (enum direction)direction, frame->type, message);
    record_clear(frame->type, message);
    free(message);
    frame_free(frame);
}

static void send(
    struct line *line, enum direction direction, const struct record_type *type, const void *message)
{
    struct world *world = &line->place->box->world;
    struct frame *frame = xcalloc(1, sizeof(*frame));
    record_encode(type, message, &frame->bytes);
    frame->type = type;
    *(line->last[direction] != NULL ? &line->last[direction]->next : &line->first[direction]) = frame;
    line->last[direction] = frame;
    int64_t at_ms = world->now_ms + world_between(world, 1, DELAY_MAX_MS);
    if (at_ms > line->clear_ms[direction])
        line->clear_ms[direction] = at_ms;
    world_later(world, line->clear_ms[direction] - world->now_ms, on_frame, NULL, direction, line, NULL);
}

void box_send(void *arg, uint32_t link, const struct record_type *type, const void *message)
{
    struct box *box = arg;
    for (struct line *line = box->lines; line != NULL; line = line->next)
        if (line->number == link && line->is_open)
            send(line, TO_AGENT, type, message);
}

void box_close_link(void *arg, uint32_t link)
{
    struct box *box = arg;
    for (struct line *line = box->lines; line != NULL; line = line->next) {
        if (line->number != link || !line->is_open)
            continue;
        line->is_open = false;
        hear(box, on_agent_hears, line->place, line);
    }
}

static void on_hang_up(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct line *line = object;
    if (place->line != line)
        return;
    on_agent_hears(place, 0, line);
    hear(place->box, on_controller_hears, place->box, line);
}

static void hang_up(void *arg)
{
    struct place *place = arg;
    if (place->line != NULL)
        world_later(&place->box->world, 0, on_hang_up, place, 0, place->line, NULL);
}

static void send_to_controller(void *arg, const struct record_type *type, const void *message)
{
    struct place *place = arg;
    if (place->line != NULL)
        send(place->line, TO_CONTROLLER, type, message);
}

/* --- dialling --- */

static void on_dial(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct box *box = place->box;
    place->is_dialling = false;
    if (place->line != NULL || place->node.core == NULL)
        return;
    if (box->core == NULL) {
        dial(place);
        return;
    }
    struct line *line = xcalloc(1, sizeof(*line));
    *line = (struct line){ .place = place, .number = ++box->last_line, .is_open = true, .next = box->lines };
    box->lines = line;
    place->line = line;
    node_hello(&place->node);
}

static void dial(struct place *place)
{
    struct world *world = &place->box->world;
    if (place->is_dialling)
        return;
    place->is_dialling = true;
    world_later(world, world_between(world, 1, 100), on_dial, place, 0, NULL, NULL);
}

void box_lose_controller(struct box *box)
{
    for (struct line *line = box->lines; line != NULL; line = line->next) {
        if (line->is_open)
            hear(box, on_agent_hears, line->place, line);
        line->is_open = false;
    }
}

/* --- nodes --- */

static void on_agent_start(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    if (place->node.is_off || place->node.core != NULL)
        return;
    node_start_agent(&place->node);
    dial(place);
}

static void lose_line(struct place *place)
{
    struct line *line = place->line;
    place->line = NULL;
    if (line != NULL)
        hear(place->box, on_controller_hears, place->box, line);
}

static void kill_agent(struct place *place)
{
    struct world *world = &place->box->world;
    if (place->node.core == NULL)
        return;
    node_kill_agent(&place->node);
    lose_line(place);
    world_later(world, world_between(world, 1, 300), on_agent_start, place, 0, NULL, NULL);
}

/* Its packets are lost for a while, and sent again and again by the kernels. */
static void silence(struct place *place)
{
    struct world *world = &place->box->world;
    int64_t until_ms = world->now_ms + world_between(world, 100, SILENCE_MAX_MS);
    for (size_t direction = 0; place->line != NULL && direction < 2; direction++)
        place->line->clear_ms[direction] = until_ms;
}

static void freeze(struct place *place)
{
    struct world *world = &place->box->world;
    if (node_is_leaderless(&place->node))
        return; // it could not be adopted
    place->node.frozen_until_ms = world->now_ms + world_between(world, 100, SILENCE_MAX_MS);
}

static void power_off(struct place *place)
{
    if (place->node.is_off)
        return;
    lose_line(place);
    node_power_off(&place->node);
    place->box->reboots++;
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
    const struct cluster_change *mark = core != NULL ? core_mark(core, place->node.name, NULL) : NULL;
    return mark != NULL && mark->kind == CHANGE_NODE_FENCE;
}

/* An administrator who looks again, because a controller that dies may have forgotten. */
static void on_fence(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct box *box = place->box;
    struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    int64_t now = box->world.now_ms;
    if (box->core != NULL && !has_fence(place)) {
        core_fence(box->core, now, now, &admin, place->node.name, "it has no power", NULL);
        box_turn(box);
        box->fences += has_fence(place);
    }
    world_later(&box->world, 1000, on_fence, place, 0, NULL, NULL);
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
    power_off(place);
    world_later(&box->world, world_between(&box->world, 0, 10000), on_fence, place, 0, NULL, NULL);
}

void box_storm_place(struct box *box)
{
    struct place *place = &box->places[world_random(&box->world) % box->n_places];
    switch (world_random(&box->world) % 10) {
    case 0:
    case 1: kill_agent(place); break;
    case 2:
    case 3:
    case 4: node_kill_shepherd(&place->node); break;
    case 5: silence(place); break;
    case 6: freeze(place); break;
    case 7: world_one_in(&box->world, 8) ? leave_for_ever(place) : reboot(place); break;
    default: cut(place); break;
    }
}

static void on_execution(void *arg, const struct spooled *entry)
{
    box_check_execution(((struct place *)arg)->box, entry);
}

void box_open_places(struct box *box)
{
    box->n_places = 1 + world_random(&box->world) % PLACES_MAX;
    for (size_t i = 0; i < box->n_places; i++) {
        struct place *place = &box->places[i];
        place->box = box;
        node_init(&place->node, &box->world, i);
        place->node.send = send_to_controller;
        place->node.hang_up = hang_up;
        place->node.executed = on_execution;
        place->node.arg = place;
        node_start_agent(&place->node);
        dial(place);
    }
}

void box_close_places(struct box *box)
{
    for (size_t i = 0; i < box->n_places; i++)
        node_clear(&box->places[i].node);
    while (box->lines != NULL) {
        struct line *line = box->lines;
        for (size_t direction = 0; direction < 2; direction++)
            while (line->first[direction] != NULL)
                frame_free(take_frame(line, (enum direction)direction));
        box->lines = line->next;
        free(line);
    }
}
