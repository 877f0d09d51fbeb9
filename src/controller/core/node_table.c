/* SPDX-License-Identifier: MIT */
/* The known nodes, by name and by link, and when each was last heard from. */
#include "controller/core/node_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/state.h"

struct core_node *core_find_node(const struct core *core, const char *name)
{
    for (size_t i = 0; name != NULL && i < core->n_nodes; i++)
        if (strcmp(core->nodes[i].name, name) == 0)
            return &core->nodes[i];
    return NULL;
}

struct core_node *core_find_link(const struct core *core, uint32_t link)
{
    for (size_t i = 0; i < core->n_nodes; i++)
        if (core->nodes[i].is_up && core->nodes[i].link == link)
            return &core->nodes[i];
    return NULL;
}

void core_hear(struct core *core, struct core_node *node)
{
    node->heard_ms = core->boot_ms;
    node->heard_wall_ms = core->now_ms;
    node->is_unreachable = false;
    core_hook_heard(core, node);
}

void core_acknowledge(struct core *core, struct core_node *node)
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
    core_hear(core, node);
    core_acknowledge(core, node);
    return node;
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

const struct core_node *core_node_named(const struct core *core, const char *name)
{
    return core_find_node(core, name);
}
