/* SPDX-License-Identifier: MIT */
/* The known nodes, by name and by link, and when each was last heard from. */
#include "controller/core/node_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/state.h"

#define HINTS_FIRST    16U
#define HINTS_PER_NODE 4U

struct core_node *core_find_node(const struct core *core, const char *name)
{
    size_t at = name_table_find(&core->node_names, name);
    return at != NAME_NONE ? &core->nodes[at] : NULL;
}

static bool has_link(const struct core_node *node, uint32_t link)
{
    return node->is_up && node->link == link;
}

/* Links are numbered consecutively, so almost every open link has its own hint. */
struct core_node *core_find_link(const struct core *core, uint32_t link)
{
    if (core->n_nodes == 0)
        return NULL;
    size_t *hint = &core->link_hints[link & (core->n_link_hints - 1)];
    for (size_t i = 0; i < core->n_nodes && !has_link(&core->nodes[*hint], link); i++)
        *hint = i;
    return has_link(&core->nodes[*hint], link) ? &core->nodes[*hint] : NULL;
}

const struct node_feature *core_find_feature(const struct core_node *node, const char *name)
{
    const struct node_feature *features = node->hello.features.items;
    for (size_t i = 0; i < node->hello.features.count; i++)
        if (text_equal(features[i].name, name))
            return &features[i];
    return NULL;
}

static void grow_hints(struct core *core)
{
    if (core->n_link_hints >= HINTS_PER_NODE * core->n_nodes)
        return;
    core->n_link_hints = core->n_link_hints > 0 ? 2 * core->n_link_hints : HINTS_FIRST;
    free(core->link_hints);
    core->link_hints = xcalloc(core->n_link_hints, sizeof(*core->link_hints));
}

void core_touch_node(struct core *core, struct core_node *node)
{
    node->last_contact_ms = core->boot_ms;
    node->last_contact_wall_ms = core->now_ms;
    node->is_unreachable = false;
    core_hook_contact(core, node);
}

void core_ack_node(struct core *core, struct core_node *node)
{
    node->acked_ms = core->boot_ms;
}

struct core_node *core_add_node(struct core *core, const char *name)
{
    struct core_node *node = core_find_node(core, name);
    if (node != NULL)
        return node;
    core->nodes = xreallocarray(core->nodes, core->n_nodes + 1, sizeof(*node));
    node = &core->nodes[core->n_nodes++];
    *node = (struct core_node){ .name = xstrdup(name), .health_due_ms = TIME_NEVER };
    name_table_add(&core->node_names, node->name, core->n_nodes - 1);
    grow_hints(core);
    core_touch_node(core, node);
    core_ack_node(core, node);
    return node;
}

static int compare_known(const void *a, const void *b)
{
    const struct known_attempt *one = a, *other = b;
    if (one->id.job != other->id.job)
        return one->id.job < other->id.job ? -1 : 1;
    if (one->token != other->token)
        return one->token < other->token ? -1 : 1;
    return one->id.rank < other->id.rank ? -1 : one->id.rank > other->id.rank;
}

void core_sort_known(struct core_node *node)
{
    struct record_list *attempts = &node->hello.attempts;
    if (attempts->count > 1)
        qsort(attempts->items, attempts->count, sizeof(struct known_attempt), compare_known);
}

const struct known_attempt *core_find_known(
    const struct core_node *node, const struct job *job, uint32_t rank)
{
    const struct record_list *attempts = &node->hello.attempts;
    const struct known_attempt wanted = { .id = { .job = job->id, .rank = rank }, .token = job->token };
    if (attempts->count == 0)
        return NULL;
    return bsearch(&wanted, attempts->items, attempts->count, sizeof(wanted), compare_known);
}

bool core_is_same_boot(const char *id, const char *other)
{
    size_t length = id != NULL ? strcspn(id, BOOT_SPOOL_MARK) : 0;
    return length > 0 && other != NULL && strcspn(other, BOOT_SPOOL_MARK) == length &&
           strncmp(id, other, length) == 0;
}

static char *without_port(const char *address)
{
    const char *first = strchr(address, ':'), *last = strrchr(address, ':');
    if (address[0] == '[')
        return xstrndup(address + 1, strcspn(address + 1, "]"));
    return first != NULL && first == last ? xstrndup(address, (size_t)(first - address)) : xstrdup(address);
}

void core_set_address(struct core *core, uint32_t link, const char *address, const char *here)
{
    struct core_node *node = core_find_link(core, link);
    if (node == NULL)
        return;
    free(node->address);
    node->address = without_port(address);
    free(node->here);
    node->here = here != NULL ? without_port(here) : NULL;
}

void core_each_node(
    const struct core *core, void (*visit)(void *arg, const struct core_node *node), void *arg)
{
    for (size_t i = 0; i < core->n_nodes; i++)
        visit(arg, &core->nodes[i]);
}

const struct core_node *core_node_at(const struct core *core, size_t number)
{
    return number < core->n_nodes ? &core->nodes[number] : NULL;
}

const struct core_node *core_node_named(const struct core *core, const char *name)
{
    return core_find_node(core, name);
}
