/* SPDX-License-Identifier: MIT */
/* Calls the hooks of the concerns, in the order of their table. */
#include "controller/core/concern.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "controller/core/entry.h"
#include "controller/core/state.h"

/* Selects the rows that have the hook at this position in a row. */
static void pick(
    const struct core_concern *const *rows, size_t place, const struct core_concern *ret[CORE_CONCERNS_MAX])
{
    size_t count = 0;
    for (; *rows != NULL; rows++) {
        const void *hook = NULL;
        memcpy(&hook, (const char *)*rows + place, sizeof(hook));
        if (hook != NULL)
            ret[count++] = *rows;
        assert(count < CORE_CONCERNS_MAX);
    }
    ret[count] = NULL;
}

void core_set_concerns(struct core *core, const struct core_concern *const *rows)
{
    core->concerns = rows;
    pick(rows, offsetof(struct core_concern, event), core->often.event);
    pick(rows, offsetof(struct core_concern, messages), core->often.messages);
    pick(rows, offsetof(struct core_concern, contact), core->often.contact);
    pick(rows, offsetof(struct core_concern, turn), core->often.turn);
    pick(rows, offsetof(struct core_concern, next_ms), core->often.next_ms);
}

#define CALL_HOOK(function, hook, parameters, names)                                                         \
    void function parameters                                                                                 \
    {                                                                                                        \
        for (const struct core_concern *const *row = core->concerns; *row != NULL; row++)                    \
            if ((*row)->hook != NULL)                                                                        \
                (*row)->hook names;                                                                          \
    }
CORE_HOOKS(CALL_HOOK)

void core_hook_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    for (const struct core_concern *const *row = core->often.event; *row != NULL; row++)
        if (((*row)->events & news->bits) != 0)
            (*row)->event(core, entry, news);
}

void core_hook_contact(struct core *core, struct core_node *node)
{
    for (const struct core_concern *const *row = core->often.contact; *row != NULL; row++)
        (*row)->contact(core, node);
}

int core_hook_hello(struct core *core, struct core_node *node, struct error *err)
{
    int r = 0;
    for (const struct core_concern *const *row = core->concerns; r == 0 && *row != NULL; row++)
        if ((*row)->hello != NULL)
            r = (*row)->hello(core, node, err);
    return r;
}

void core_hook_turn(struct core *core)
{
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        for (const struct core_concern *const *row = core->often.turn; *row != NULL; row++)
            is_changed |= (*row)->turn(core);
    }
}

int core_check_concerns(const struct core *core, const struct identity *who, const struct job_spec *spec,
    size_t size, struct error *err)
{
    int r = 0;
    for (const struct core_concern *const *row = core->concerns; r == 0 && *row != NULL; row++)
        if ((*row)->check != NULL)
            r = (*row)->check(core, who, spec, size, err);
    return r;
}

int core_check_change(const struct core *core, const struct identity *who, struct error *err)
{
    int r = 0;
    for (const struct core_concern *const *row = core->concerns; r == 0 && *row != NULL; row++)
        if ((*row)->check_change != NULL)
            r = (*row)->check_change(core, who, err);
    return r;
}

bool core_is_rank_lost(const struct core *core, struct core_entry *entry, uint32_t rank)
{
    for (const struct core_concern *const *row = core->concerns; *row != NULL; row++)
        if ((*row)->is_lost != NULL && (*row)->is_lost(entry, rank))
            return true;
    return false;
}

const struct core_kind *core_find_kind(const struct core *core, const char *kind)
{
    for (const struct core_concern *const *row = core->concerns; *row != NULL; row++)
        for (const struct core_kind *known = (*row)->kinds; known != NULL && known->kind != NULL; known++)
            if (strcmp(known->kind, kind) == 0)
                return known;
    return NULL;
}

bool core_take_message(struct core *core, struct core_node *node, uint16_t id, const void *message)
{
    bool is_taken = false;
    for (const struct core_concern *const *row = core->often.messages; *row != NULL; row++)
        for (const struct core_message *at = (*row)->messages; at->take != NULL; at++)
            if (at->id == id) {
                at->take(core, node, message);
                is_taken = true;
            }
    return is_taken;
}

int64_t core_next_due(const struct core *core)
{
    int64_t next_ms = TIME_NEVER;
    for (const struct core_concern *const *row = core->often.next_ms; *row != NULL; row++) {
        int64_t due_ms = (*row)->next_ms(core);
        next_ms = due_ms < next_ms ? due_ms : next_ms;
    }
    return next_ms;
}
