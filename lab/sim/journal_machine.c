/* SPDX-License-Identifier: MIT */
/* Only events of the kind "cluster" are used; a GPU that was present once counts, even if it is gone now. */
#include "lab/sim/journal_machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/cluster_change.h"
#include "lab/sim/journal.h"
#include "lab/sim/settings_text.h"
#include "lab/sim/workload.h"

struct machine_reader {
    struct sim_nodes *nodes;
    struct sched_settings *settings;
};

static struct sim_node *find_or_add(struct sim_nodes *nodes, const char *name)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (strcmp(nodes->items[i].name, name) == 0)
            return &nodes->items[i];
    nodes->items = xreallocarray(nodes->items, nodes->count + 1, sizeof(*nodes->items));
    struct sim_node *node = &nodes->items[nodes->count++];
    *node = (struct sim_node){ .name = xstrdup(name), .model = xstrdup("") };
    return node;
}

static void on_node_up(struct sim_nodes *nodes, const struct cluster_change *change)
{
    const struct cluster_device *devices = change->devices.items;
    struct sim_node *node = find_or_add(nodes, change->node);
    uint32_t gpus = (uint32_t)change->devices.count;
    nodes->gpus -= node->gpus;
    node->gpus = gpus > node->gpus ? gpus : node->gpus;
    nodes->gpus += node->gpus;
    node->cpu_milli = change->cpu_milli;
    node->memory = change->memory;
    if (gpus > 0 && devices[0].model != NULL) {
        free(node->model);
        node->model = xstrdup(devices[0].model);
    }
}

static int on_change(struct machine_reader *machine, const struct cluster_change *change, struct error *err)
{
    if (change->kind == CHANGE_NODE_UP && change->node != NULL)
        on_node_up(machine->nodes, change);
    if (change->kind == CHANGE_SETTINGS && change->text != NULL)
        return settings_text_read(change->text, machine->settings, err);
    return 0;
}

static int read_line(struct line_reader *reader, char *line, struct error *err)
{
    struct job_event event;
    uint64_t command_hash;
    if (*line == '\0')
        return 0;
    if (reader->number == 1) {
        int r = journal_head(line, err);
        reader->is_lost = r < 0;
        return r;
    }
    if (strstr(line, "\"cluster\"") == NULL)
        return 0; // parsing JSON is what takes the time
    int r = journal_line(line, &event, &command_hash, err);
    for (size_t i = 0; r == 0 && event.type == EVENT_CLUSTER && i < event.change.count; i++)
        r = on_change(reader->state, &((const struct cluster_change *)event.change.items)[i], err);
    job_event_clear(&event);
    return r;
}

int journal_machine_read(
    const char *path, struct sim_nodes *nodes, struct sched_settings *settings, struct error *err)
{
    struct machine_reader machine = { .nodes = nodes, .settings = settings };
    struct trace_options options = { 0 };
    struct workload nothing = { 0 };
    struct line_reader reader = {
        .path = path, .workload = &nothing, .options = &options, .state = &machine, .read = read_line
    };
    int r = lines_read(&reader, err);
    if (r < 0)
        return r;
    if (nodes->gpus > 0)
        return 0;
    (void)error_set(err, -EINVAL, "%.300s: no node with a GPU was ever up", path);
    return error_hint(err, "name the cluster: --cluster NODESxGPUS");
}
