/* SPDX-License-Identifier: MIT */
/*
 * Connections. Each is a line: in each direction frames arrive in order, each after a while, or not at all
 * once it broke. The two ends hear of its end at different times, so that a node may have dialled again while
 * its old line is still open at the controller and old frames, its HELLO among them, are still on their way.
 * What links.c does at the controller is done here: the first frame is a HELLO, and a newer HELLO closes the
 * node's older lines.
 *
 * Some histories do worse than a stream can: a frame comes again, later, on its own line or on the node's
 * present one. What only a stream's beginning allows (HELLO, WELCOME) may then be refused, and the line ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "box_lines.h"

#define DELAY_MAX_MS 3    // of a frame
#define LATE_MAX_MS  3000 // after that the other end has noticed too
#define COPY_MAX_MS  4000 // a frame may be repeated for this time after the first copy
#define COPIES       12   // one in so many does
#define HALF_OPEN    5    // one line in so many

enum direction { TO_CONTROLLER, TO_AGENT };

struct frame {
    struct buffer bytes;
    const struct record_type *type;
    uint64_t number; // on its line, in its direction; a copy has that of the first one
    struct frame *next;
};

struct line {
    struct place *place;
    uint32_t number;  // the controller's name for it; 0: its handshake, which ends with HELLO, is not through
    bool is_open;     // at the controller
    bool has_greeted; // its HELLO was believed there
    bool is_mute;     // the machine went off, and with it the kernel that would have sent again what was lost
    struct frame *first[2], *last[2];
    uint64_t sent[2], taken[2]; // frames; the difference is under way
    int64_t clear_ms[2];        // nothing arrives earlier
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
    line->taken[direction] = frame->number;
    if (frame->next == NULL)
        line->last[direction] = NULL;
    return frame;
}

static void count(const struct line *line, enum tally_kind kind)
{
    line->place->box->tally.counts[kind]++;
}

static bool is_newest(const struct line *line)
{
    return line->place->line == line;
}

/* --- the ends of a line --- */

static void on_controller_hears(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct line *line = object;
    if (!line->is_open)
        return;
    line->is_open = false;
    core_link_down(box->core, box->world.now_ms, world_wall_ms(&box->world), line->number);
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
    line_dial(place);
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

void line_cut(struct place *place)
{
    struct box *box = place->box;
    struct line *line = place->line;
    if (line == NULL)
        return;
    count(line, TALLY_CUTS);
    hear(box, on_controller_hears, box, line);
    hear(box, on_agent_hears, place, line);
}

/* --- frames --- */

static void on_frame(void *arg, uint64_t direction, void *object);

/* The same node's, from before; what their frames still say is lost. */
static void close_older(struct box *box, const struct line *newer)
{
    for (struct line *line = box->lines; line != NULL; line = line->next) {
        if (line->place != newer->place || line->number == 0 || line->number >= newer->number ||
            !line->is_open)
            continue;
        line->is_open = false;
        hear(box, on_agent_hears, line->place, line);
        count(line, TALLY_OVERLAPS);
    }
}

static int take_hello(struct box *box, struct line *line, const void *hello, struct error *err)
{
    int64_t now = box->world.now_ms;
    int r = core_link_up(box->core, now, world_wall_ms(&box->world), line->number, hello, err);
    if (r == 0) {
        line->has_greeted = true;
        close_older(box, line);
    }
    if (r == -ESTALE || r == -EBUSY)
        count(line, r == -ESTALE ? TALLY_OLD_HELLOS : TALLY_REBOOTS_EARLY);
    return r;
}

static int tell_controller(struct box *box, struct line *line, const struct record_type *type,
    const void *message, struct error *err)
{
    int64_t now = box->world.now_ms;
    if (line->number == 0)
        line->number = ++box->last_line;
    if (line->has_greeted)
        return core_link_message(
            box->core, now, world_wall_ms(&box->world), line->number, type->id, message, err);
    if (type->id == MESSAGE_HELLO)
        return take_hello(box, line, message, err);
    return error_set(err, -EPROTO, "the first message was %s, not HELLO", type->name);
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

/* A refusal that is right: of an old connection, of a machine that is back before its absence was noticed, of
 * what can come only at a connection's beginning, or before it is durable that its node is held. */
static bool may_refuse(const struct line *line, int code, bool is_copy)
{
    return is_copy || !is_newest(line) || code == -EBUSY || code == -EAGAIN;
}

static void deliver_to_controller(
    struct line *line, const struct record_type *type, const void *message, bool is_copy)
{
    struct box *box = line->place->box;
    struct error err = { 0 };
    if (!line->is_open || line->is_mute) {
        count(line, TALLY_FRAMES_LOST);
        return;
    }
    if (!is_newest(line))
        count(line, TALLY_FRAMES_LATE);
    int r = tell_controller(box, line, type, message, &err);
    box_turn(box);
    if (r == 0)
        return;
    if (!may_refuse(line, r, is_copy)) {
        box_break(box, "the controller refused a frame", 0);
        (void)fprintf(stderr, "%s\n", err.message);
    }
    on_controller_hears(box, 0, line); // it closes what it does not understand
    hear(box, on_agent_hears, line->place, line);
}

static void deliver_to_agent(
    struct line *line, const struct record_type *type, const void *message, bool is_copy)
{
    struct box *box = line->place->box;
    struct node *node = &line->place->node;
    struct error err = { 0 };
    if (!is_newest(line) || node->core == NULL) {
        count(line, TALLY_FRAMES_LOST);
        if (type->id == MESSAGE_RELEASE_ATTEMPT)
            count(line, TALLY_ACKS_LOST);
        return;
    }
    int r = agent_core_message(node->core, box->world.now_ms, type->id, message, &err);
    if (r < 0 && !is_copy) {
        box_break(box, "the agent refused a frame", 0);
        (void)fprintf(stderr, "%s\n", err.message);
    }
    if (r < 0)
        line_hang_up(line->place);
}

static void deliver(struct line *line, enum direction direction, const struct record_type *type,
    const void *message, bool is_copy)
{
    (direction == TO_CONTROLLER ? deliver_to_controller : deliver_to_agent)(line, type, message, is_copy);
}

static void open_frame(struct line *line, enum direction direction, const struct frame *frame, bool is_copy)
{
    struct error err = { 0 };
    _cleanup_free_ void *message = xcalloc(1, frame->type->size);
    if (record_decode(frame->type, frame->bytes.bytes, frame->bytes.length, message, &err) < 0)
        box_break(line->place->box, "a frame cannot be read", 0);
    deliver(line, direction, frame->type, message, is_copy);
    record_clear(frame->type, message);
}

static void on_frame(void *arg, uint64_t direction, void *object)
{
    struct line *line = object;
    if (is_kept_waiting(line, (enum direction)direction))
        return;
    struct frame *frame = take_frame(line, (enum direction)direction);
    count(line, TALLY_FRAMES);
    open_frame(line, (enum direction)direction, frame, false);
    frame_free(frame);
}

/* --- frames that come again --- */

static void drop_frame(void *object)
{
    frame_free(object);
}

/* One time in two it comes on the connection that the node has by then; but no HELLO does: whether one is of
 * today only the stream can know, after the controller has started anew.
 *
 * None comes before the first one, which may wait longer for a stopped agent than was planned for the copy:
 * no stream delivers bytes again that it has not delivered. A WELCOME that its copy overtook would be
 * refused, being the second one. */
static void on_copy(void *arg, uint64_t direction, void *object)
{
    struct line *line = arg;
    struct frame *frame = object;
    const struct place *place = line->place;
    const struct line *own = line;
    bool may_stray = place->line != NULL && frame->type->id != MESSAGE_HELLO;
    if (may_stray && world_one_in(&place->box->world, 2))
        line = place->line;
    bool is_later = frame->number <= own->taken[direction];
    bool can_come = direction == TO_CONTROLLER
                        ? line->is_open
                        : is_newest(line) && place->node.core != NULL && !node_is_frozen(&place->node);
    if (is_later && can_come) {
        count(line, TALLY_FRAMES_TWICE);
        if (line != own)
            count(line, TALLY_FRAMES_STRAY);
        open_frame(line, (enum direction)direction, frame, true);
    }
    frame_free(frame);
}

static void copy_later(struct line *line, enum direction direction, const struct frame *frame)
{
    struct world *world = &line->place->box->world;
    struct frame *copy = xcalloc(1, sizeof(*copy));
    copy->type = frame->type;
    copy->number = frame->number;
    buffer_append(&copy->bytes, frame->bytes.bytes, frame->bytes.length);
    int64_t delay_ms = line->clear_ms[direction] - world->now_ms + world_between(world, 0, COPY_MAX_MS);
    world_later(world, delay_ms, on_copy, line, direction, copy, drop_frame);
}

static void send(
    struct line *line, enum direction direction, const struct record_type *type, const void *message)
{
    struct world *world = &line->place->box->world;
    struct frame *frame = xcalloc(1, sizeof(*frame));
    record_encode(type, message, &frame->bytes);
    frame->type = type;
    frame->number = ++line->sent[direction];
    *(line->last[direction] != NULL ? &line->last[direction]->next : &line->first[direction]) = frame;
    line->last[direction] = frame;
    int64_t at_ms = world->now_ms + world_between(world, 1, DELAY_MAX_MS);
    if (at_ms > line->clear_ms[direction])
        line->clear_ms[direction] = at_ms;
    world_later(world, line->clear_ms[direction] - world->now_ms, on_frame, NULL, direction, line, NULL);
    struct box *box = line->place->box;
    if (box->has_copies && box->is_storm && world_one_in(world, COPIES))
        copy_later(line, direction, frame);
}

void box_send(void *arg, uint32_t link, const struct record_type *type, const void *message)
{
    struct box *box = arg;
    for (struct line *line = box->lines; line != NULL; line = line->next) {
        if (line->number != link)
            continue;
        box_check_sent(box, line->place, type, message);
        if (line->is_open)
            send(line, TO_AGENT, type, message);
    }
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

void line_hang_up(void *arg)
{
    struct place *place = arg;
    if (place->line != NULL)
        world_later(&place->box->world, 0, on_hang_up, place, 0, place->line, NULL);
}

void line_send(void *arg, const struct record_type *type, const void *message)
{
    struct place *place = arg;
    if (place->line != NULL)
        send(place->line, TO_CONTROLLER, type, message);
}

/* --- dialling --- */

/* Nobody answers for so long that the node gives up, and dials anew; what it said comes later. */
static void on_give_up(void *arg, uint64_t number, void *object)
{
    struct line *line = object;
    if (line->place->line != line)
        return;
    on_agent_hears(line->place, 0, line);
    world_later(&line->place->box->world, world_between(&line->place->box->world, 1, 2 * LATE_MAX_MS),
        on_controller_hears, line->place->box, line->number, line, NULL);
}

static void open_half(struct line *line)
{
    struct world *world = &line->place->box->world;
    count(line, TALLY_HALF_OPEN);
    for (size_t direction = 0; direction < 2; direction++)
        line->clear_ms[direction] = world->now_ms + world_between(world, 100, SILENCE_MAX_MS);
    world_later(world, world_between(world, 20, 2000), on_give_up, NULL, 0, line, NULL);
}

static void on_dial(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct box *box = place->box;
    place->is_dialling = false;
    if (place->line != NULL || place->node.core == NULL)
        return;
    if (box->core == NULL || box->world.now_ms < place->cut_until_ms) {
        line_dial(place);
        return;
    }
    struct line *line = xcalloc(1, sizeof(*line));
    *line = (struct line){ .place = place, .is_open = true, .next = box->lines };
    box->lines = line;
    place->line = line;
    if (box->has_half_open && box->is_storm && world_one_in(&box->world, HALF_OPEN))
        open_half(line);
    node_hello(&place->node);
}

void line_dial(struct place *place)
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

void line_lose(struct place *place)
{
    struct line *line = place->line;
    place->line = NULL;
    if (line != NULL)
        hear(place->box, on_controller_hears, place->box, line);
}

void line_vanish(struct place *place)
{
    struct world *world = &place->box->world;
    struct line *line = place->line;
    place->line = NULL;
    for (struct line *old = place->box->lines; old != NULL; old = old->next)
        if (old->place == place && old->clear_ms[TO_CONTROLLER] > world->now_ms + DELAY_MAX_MS)
            old->is_mute = true;
    if (line != NULL)
        world_later(world, world_between(world, 1, LATE_MAX_MS), on_controller_hears, place->box,
            line->number, line, NULL);
}

void line_silence(struct place *place)
{
    struct world *world = &place->box->world;
    int64_t until_ms = world->now_ms + world_between(world, 100, SILENCE_MAX_MS);
    if (place->line == NULL)
        return;
    count(place->line, TALLY_SILENCES);
    for (size_t direction = 0; direction < 2; direction++)
        place->line->clear_ms[direction] = until_ms;
}

void lines_free(struct box *box)
{
    while (box->lines != NULL) {
        struct line *line = box->lines;
        for (size_t direction = 0; direction < 2; direction++)
            while (line->first[direction] != NULL)
                frame_free(take_frame(line, (enum direction)direction));
        box->lines = line->next;
        free(line);
    }
}
