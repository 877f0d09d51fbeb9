/* SPDX-License-Identifier: MIT */
#include "controller/core/node_jobs.h"

#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"

static struct node_jobs *find(const struct core *core, const char *name)
{
    size_t at = name_table_find(&core->node_jobs.names, name);
    return at != NAME_NONE ? &core->node_jobs.nodes[at] : NULL;
}

static struct node_jobs *find_or_add(struct core *core, const char *name)
{
    struct node_jobs_table *table = &core->node_jobs;
    struct node_jobs *node = find(core, name);
    if (node != NULL)
        return node;
    table->nodes = xreallocarray(table->nodes, table->count + 1, sizeof(*table->nodes));
    node = &table->nodes[table->count];
    *node = (struct node_jobs){ .name = xstrdup(name) };
    name_table_add(&table->names, node->name, table->count++);
    return node;
}

void core_enter_nodes(struct core *core, struct core_entry *entry)
{
    for (size_t rank = 0; rank < job_node_count(entry->job); rank++) {
        struct node_jobs *node = find_or_add(core, job_node_name(entry->job, rank));
        if (node->count == node->capacity) {
            node->capacity = node->capacity > 0 ? 2 * node->capacity : 8;
            node->items = xreallocarray(node->items, node->capacity, sizeof(struct core_entry *));
        }
        node->items[node->count++] = entry;
    }
}

void core_leave_nodes(struct core *core, struct core_entry *entry)
{
    for (size_t rank = 0; rank < job_node_count(entry->job); rank++) {
        struct node_jobs *node = find(core, job_node_name(entry->job, rank));
        size_t kept = 0;
        for (size_t i = 0; node != NULL && i < node->count; i++)
            if (node->items[i] != entry)
                node->items[kept++] = node->items[i];
        if (node != NULL)
            node->count = kept;
    }
}

struct core_entry **core_jobs_on(const struct core *core, const char *name, size_t *ret_count)
{
    const struct node_jobs *node = find(core, name);
    size_t count = node != NULL ? node->count : 0;
    struct core_entry **copy = xcalloc(count + 1, sizeof(struct core_entry *));
    for (size_t i = 0; i < count; i++)
        copy[i] = node->items[count - 1 - i];
    *ret_count = count;
    return copy;
}

void core_clear_node_jobs(struct core *core)
{
    for (size_t i = 0; i < core->node_jobs.count; i++) {
        free(core->node_jobs.nodes[i].name);
        free(core->node_jobs.nodes[i].items);
    }
    free(core->node_jobs.nodes);
    name_table_clear(&core->node_jobs.names);
    core->node_jobs = (struct node_jobs_table){ 0 };
}
