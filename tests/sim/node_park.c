/* SPDX-License-Identifier: MIT */
/*
 * The spool says which order was the last and how it went. A helper works on it for a while, dies now and
 * then before or after it has saved the job, and may end when the agent that started it is dead: then nobody
 * reports its result before the order is given again. The driver refuses now and then, and loses a job.
 *
 * The real parker would not restore a job while something is on its GPUs. This one does, because the
 * controller must never order that.
 */
#include "node_park.h"

#include <stdlib.h>

#include "base/memory.h"

#define AGAIN_MS    100 // until another helper is looked for
#define SAVED_BYTES (1ULL << 30)
#define LATE_MS     1000 // after a return that was refused

struct report {
    struct node *node;
    struct spooled *entry;
    struct message_park_result result;
};

static void on_report(void *arg, uint64_t life, void *object)
{
    struct node *node = arg;
    const struct report *report = object;
    if (node->core != NULL && node->life == life && node_is_frozen(node)) {
        world_later(
            node->world, node->frozen_until_ms - node->world->now_ms, on_report, node, life, object, free);
        return;
    }
    if (node->core != NULL && node->life == life)
        agent_core_parked(node->core, &report->result);
    free(object);
}

static void report(struct node *node, struct spooled *entry, uint32_t number, enum park_action action,
    enum park_outcome outcome)
{
    static char why[] = "the driver cannot";
    struct report *report = xcalloc(1, sizeof(*report));
    report->result = (struct message_park_result){
        .id = entry->id,
        .token = entry->token,
        .number = number,
        .action = action,
        .outcome = outcome,
        .bytes = action == PARK_SAVE && outcome == PARK_DONE ? SAVED_BYTES : 0,
        .text = outcome == PARK_DONE ? NULL : why,
        .waited_ms = entry->waited_ms,
    };
    world_later(node->world, world_between(node->world, 0, 3), on_report, node, node->life, report, free);
}

/* It runs, and no order about it is being carried out. */
static bool is_back(const struct spooled *entry)
{
    return entry->park.outcome == (entry->park.is_return ? PARK_DONE : PARK_REFUSED);
}

static bool is_away(const struct spooled *entry)
{
    return entry->park.outcome == (entry->park.is_return ? PARK_REFUSED : PARK_DONE);
}

static void on_helped(void *arg, uint64_t number, void *object);

static void start_helper(struct node *node, struct spooled *entry)
{
    entry->park.is_helped = true;
    world_later(
        node->world, world_between(node->world, 1, node->helper_max_ms), on_helped, node, 0, entry, NULL);
}

/* The agent that lives now waits for the result. */
static void begin(struct node *node, struct spooled *entry)
{
    entry->park.asked_life = node->life;
    if (!entry->park.is_helped)
        start_helper(node, entry);
}

void node_begin_early(struct spooled *entry, bool is_early)
{
    entry->is_early = entry->was_early = is_early;
    if (is_early)
        entry->park.outcome = PARK_DONE; // of a save that is none
}

static enum park_outcome save(struct node *node, struct spooled *entry)
{
    struct node_parking *park = &entry->park;
    if (entry->is_early)
        return PARK_REFUSED;
    if (park->was_away)
        return PARK_DONE;
    if (park->is_begun && park->is_given_up)
        park->is_return = true;
    if (park->is_begun || park->is_given_up) { // an earlier helper has died, or another rank was refused
        node_restore(node, entry);
        return park->is_given_up ? PARK_DONE : PARK_REFUSED;
    }
    if (world_one_in(node->world, 6) || park->bytes_max < SAVED_BYTES)
        return PARK_REFUSED;
    if (world_one_in(node->world, 40))
        return PARK_LOST;
    entry->is_saved = entry->is_running;
    return PARK_DONE;
}

static enum park_outcome bring_back(struct node *node, struct spooled *entry)
{
    if (entry->is_early) { // its device filter cannot be changed, or is
        if (world_one_in(node->world, 6))
            return PARK_REFUSED;
        node_grant(node, entry);
        return PARK_DONE;
    }
    if (entry->is_saved && world_one_in(node->world, node->has_long_jobs ? 8 : 3)) {
        node->disturbed(node->arg, LATE_MS);
        return PARK_REFUSED;
    }
    if (entry->is_saved && world_one_in(node->world, 40))
        return PARK_LOST;
    for (size_t i = 0; i < entry->park.n_gpus; i++)
        entry->gpus[i] = entry->park.gpus[i];
    node_restore(node, entry);
    return PARK_DONE;
}

static void on_again(void *arg, uint64_t life, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    bool is_waiting = !entry->is_removed && !entry->park.is_helped && entry->park.outcome == 0;
    if (node->core != NULL && node->life == life && is_waiting)
        start_helper(node, entry);
}

static void on_helped(void *arg, uint64_t number, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    struct node_parking *park = &entry->park;
    bool is_asked = node->core != NULL && park->asked_life == node->life;
    park->is_helped = false;
    if (entry->is_removed)
        return;
    if (world_one_in(node->world, 12)) { // it dies
        if (!park->is_return && !park->is_begun && !park->was_away && !park->is_lost)
            entry->is_saved = entry->is_running && world_one_in(node->world, 2);
        node->helper_deaths++;
        node->disturbed(node->arg, LATE_MS);
        park->is_begun = true;
        if (is_asked)
            world_later(node->world, AGAIN_MS, on_again, node, node->life, entry, NULL);
        return;
    }
    if (park->is_lost)
        park->outcome = PARK_LOST;
    else
        park->outcome = park->is_return ? bring_back(node, entry) : save(node, entry);
    park->is_lost = park->outcome == PARK_LOST;
    if (park->is_given_up)
        park->is_return = true;
    park->is_given_up = park->is_begun = false;
    if (is_asked)
        report(node, entry, park->number, park->is_return ? PARK_RETURN : PARK_SAVE, park->outcome);
}

static void take_order(struct node *node, struct spooled *entry, const struct message_park *order)
{
    struct node_parking *park = &entry->park;
    const struct gpu_grant *grants = order->gpus.items;
    park->was_away = order->action == PARK_SAVE && is_away(entry);
    park->number = order->number;
    park->is_return = order->action == PARK_RETURN;
    park->bytes_max = order->bytes_max;
    park->outcome = (enum park_outcome)0;
    park->is_given_up = park->is_begun = false;
    park->n_gpus = order->gpus.count < NODE_GPUS ? order->gpus.count : NODE_GPUS;
    for (size_t i = 0; i < park->n_gpus; i++)
        park->gpus[i] = grants[i].index;
    begin(node, entry);
}

/* The number of the order is that in the spool. */
static void take_known(struct node *node, struct spooled *entry, const struct message_park *order)
{
    struct node_parking *park = &entry->park;
    bool is_save = order->action == PARK_SAVE;
    /* The ranks of a job are asked again with the same number, and keep their GPUs meanwhile. */
    bool is_refused_return = park->is_return && park->outcome == PARK_REFUSED && entry->n_parts > 0;
    if (is_save && park->is_return) {
        report(node, entry, order->number, PARK_SAVE, PARK_REFUSED); // it was undone
    } else if (!is_save && !park->is_return && park->is_helped) {
        park->is_given_up = true;
        begin(node, entry);
    } else if (!is_save && !park->is_return) {
        take_order(node, entry, order); // it is to run, whatever an earlier agent did
        park->is_return = true;
    } else if (park->outcome != 0 && !is_refused_return) {
        report(node, entry, order->number, park->is_return ? PARK_RETURN : PARK_SAVE, park->outcome);
    } else {
        park->outcome =
            (enum park_outcome)0; // until a helper has carried it out, if the first one dies as well
        begin(node, entry);
    }
}

struct late_order {
    struct spooled *entry;
    struct message_park order;
};

static void free_order(void *object)
{
    struct late_order *late = object;
    gpu_grants_clear(&late->order.gpus);
    free(late);
}

void node_recall_park(const struct node *node, const struct spooled *entry, struct known_attempt *known)
{
    const struct node_parking *park = &entry->park;
    bool is_waiting = park->waiting_life == node->life && park->waiting_number > park->number;
    bool is_at_rest = !entry->is_early && (park->number == 0 || is_back(entry));
    known->park_number = is_waiting ? park->waiting_number : park->number;
    known->park_seen = is_waiting       ? PARK_SEEN_CHANGING
                       : is_at_rest     ? PARK_SEEN_RUNNING
                       : is_away(entry) ? PARK_SEEN_PARKED
                                        : PARK_SEEN_CHANGING;
}

static void on_order(void *arg, uint64_t life, void *object)
{
    struct node *node = arg;
    const struct late_order *late = object;
    if (node->core != NULL && node->life == life && !late->entry->is_removed)
        node_park(node, &late->order);
    free_order(object);
}

/* Something is still on the GPUs, for a moment: the spool does not have the order yet. */
static bool waits_for_gpus(struct node *node, const struct message_park *order)
{
    return order->action == PARK_RETURN && world_one_in(node->world, 4);
}

/* Another helper is still at work, on an earlier order. */
static void put_off(struct node *node, struct spooled *entry, const struct message_park *order)
{
    struct late_order *late = xcalloc(1, sizeof(*late));
    late->entry = entry;
    late->order = *order;
    late->order.gpus = (struct record_list){ 0 };
    gpu_grants_copy(&late->order.gpus, &order->gpus);
    entry->park.waiting_number = order->number;
    entry->park.waiting_life = node->life;
    world_later(node->world, AGAIN_MS, on_order, node, node->life, late, free_order);
}

void node_park(void *arg, const struct message_park *order)
{
    struct node *node = arg;
    struct spooled *entry = node_find(node, &order->id);
    if (entry == NULL || order->number < entry->park.number)
        return; // a late copy
    bool is_new = order->number > entry->park.number;
    bool is_check = order->action == PARK_CHECK && (is_new || !entry->park.is_return);
    if (entry->has_exit)
        report(node, entry, order->number,
            order->action == PARK_CHECK ? PARK_RETURN : (enum park_action)order->action, PARK_DONE);
    else if (is_check)
        report(
            node, entry, order->number, PARK_CHECK, world_one_in(node->world, 8) ? PARK_REFUSED : PARK_DONE);
    else if (is_new && (entry->park.is_helped || waits_for_gpus(node, order)))
        put_off(node, entry, order);
    else if (is_new)
        take_order(node, entry, order);
    else
        take_known(node, entry, order);
}
