/* SPDX-License-Identifier: MIT */
/* Parses the nodes of a cluster from a short text or a CSV list (columns sn or name, gpu or gpus, model,
 * cpu_milli, memory_mib). */
#include "lab/sim/nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/name_table.h"
#include "base/memory.h"
#include "base/parse.h"
#include "lab/sim/workload.h"

#define CPU_PLENTY 1000000U // thousandths of a CPU per node if not specified
#define GPU_MEMORY (80ULL << 30)

static void nodes_add(struct sim_nodes *nodes, const struct sim_node *node)
{
    size_t n = nodes->count;
    if ((n & (n - 1)) == 0)
        nodes->items = xreallocarray(nodes->items, n == 0 ? 1 : 2 * n, sizeof(*nodes->items));
    nodes->items[n] = *node;
    nodes->items[n].name = xstrdup(node->name);
    nodes->items[n].model = xstrdup(node->model);
    nodes->count++;
    nodes->gpus += node->gpus;
}

static void add_alike(struct sim_nodes *nodes, uint64_t count, uint64_t gpus)
{
    for (uint64_t i = 1; i <= count; i++) {
        char name[32], model[1] = "";
        (void)snprintf(name, sizeof(name), "node%llu", (unsigned long long)i);
        struct sim_node node = {
            .name = name, .model = model, .gpus = (uint32_t)gpus, .cpu_milli = CPU_PLENTY
        };
        nodes_add(nodes, &node);
    }
}

/* The position of each column; NODE_COLUMNS_MAX: missing. */
enum { NODE_NAME, NODE_GPUS, NODE_MODEL, NODE_CPU, NODE_MEMORY, NODE_VALUES };
#define NODE_COLUMNS_MAX 32U

struct node_list {
    struct sim_nodes *nodes;
    size_t count;
    size_t at[NODE_VALUES];
    struct name_table names; // of nodes
};

static int read_header(struct node_list *list, char *line, struct error *err)
{
    static const char *const names[][2] = { { "sn", "name" }, { "gpu", "gpus" }, { "model", "gpu_model" },
        { "cpu_milli", "cpu_milli" }, { "memory_mib", "memory_mib" } };
    char *fields[NODE_COLUMNS_MAX];
    list->count = csv_split(line, fields, NODE_COLUMNS_MAX);
    if (list->count > NODE_COLUMNS_MAX)
        return error_set(
            err, -EINVAL, "has %zu columns; at most %u are supported", list->count, NODE_COLUMNS_MAX);
    for (size_t value = 0; value < NODE_VALUES; value++) {
        list->at[value] = NODE_COLUMNS_MAX;
        for (size_t i = 0; i < list->count; i++)
            if (strcmp(fields[i], names[value][0]) == 0 || strcmp(fields[i], names[value][1]) == 0)
                list->at[value] = i;
    }
    if (list->at[NODE_NAME] == NODE_COLUMNS_MAX || list->at[NODE_GPUS] == NODE_COLUMNS_MAX)
        return error_set(err, -EINVAL, "a list of nodes requires the columns sn (or name) and gpu (or gpus)");
    return 0;
}

static int read_node(struct line_reader *reader, char *line, struct error *err)
{
    struct node_list *list = reader->state;
    if (list->count == 0)
        return read_header(list, line, err);
    if (*line == '\0')
        return 0;
    char *fields[NODE_COLUMNS_MAX], none[1] = "";
    size_t count = csv_split(line, fields, NODE_COLUMNS_MAX);
    if (count != list->count)
        return error_set(err, -EINVAL, "has %zu fields; the first line names %zu", count, list->count);
    int64_t gpus = 0, cpu_milli = CPU_PLENTY, memory_mib = 0;
    int result = parse_integer(fields[list->at[NODE_GPUS]], "number of GPUs", 0, NODE_GPUS_LIMIT, &gpus, err);
    if (result == 0 && list->at[NODE_CPU] < NODE_COLUMNS_MAX)
        result = parse_integer(fields[list->at[NODE_CPU]], "cpu_milli", 0, INT32_MAX, &cpu_milli, err);
    if (result == 0 && list->at[NODE_MEMORY] < NODE_COLUMNS_MAX)
        result =
            parse_integer(fields[list->at[NODE_MEMORY]], "memory_mib", 0, INT64_MAX >> 20, &memory_mib, err);
    if (result == 0 && name_table_find(&list->names, fields[list->at[NODE_NAME]]) != NAME_NONE)
        result = error_set(err, -EINVAL, "node %.60s is listed twice", fields[list->at[NODE_NAME]]);
    if (result < 0)
        return result;
    struct sim_node node = {
        .name = fields[list->at[NODE_NAME]],
        .model = list->at[NODE_MODEL] < NODE_COLUMNS_MAX ? fields[list->at[NODE_MODEL]] : none,
        .gpus = (uint32_t)gpus,
        .cpu_milli = (uint32_t)cpu_milli,
        .memory = (uint64_t)memory_mib << 20,
    };
    nodes_add(list->nodes, &node);
    name_table_add(&list->names, list->nodes->items[list->nodes->count - 1].name, list->nodes->count - 1);
    return 0;
}

static int read_list(struct sim_nodes *nodes, const char *path, struct error *err)
{
    struct node_list list = { .nodes = nodes };
    struct trace_options options = { 0 };
    struct workload nothing = { 0 };
    struct line_reader reader = {
        .path = path, .workload = &nothing, .options = &options, .state = &list, .read = read_node
    };
    int result = lines_read(&reader, err);
    name_table_clear(&list.names);
    if (result < 0) {
        err->hint[0] = '\0'; // there is nothing to skip here
        return result;
    }
    if (nodes->count == 0)
        return error_set(err, -EINVAL, "%.300s has no nodes", path);
    return 0;
}

int nodes_read(struct sim_nodes *nodes, const char *text, struct error *err)
{
    unsigned long long count = 0, gpus = 0;
    int length = 0;
    if (sscanf(text, "%7llux%7llu%n", &count, &gpus, &length) == 2 && text[length] == '\0') {
        if (count < 1 || count > SIM_NODES_MAX || gpus > NODE_GPUS_LIMIT)
            return error_set(err, -EINVAL,
                "--cluster %.40s: 1 to %u nodes with up to %u GPUs each can be simulated", text,
                SIM_NODES_MAX, NODE_GPUS_LIMIT);
        add_alike(nodes, count, gpus);
        return 0;
    }
    if (sscanf(text, "pool:%7llu%n", &gpus, &length) == 1 && text[length] == '\0') {
        if (gpus < 1 || gpus > NODE_GPUS_LIMIT)
            return error_set(
                err, -EINVAL, "--cluster %.40s: a pool is one node of 1 to %u GPUs", text, NODE_GPUS_LIMIT);
        add_alike(nodes, 1, gpus);
        return 0;
    }
    if (strchr(text, '/') == NULL && strchr(text, '.') == NULL)
        return error_set(
            err, -EINVAL, "--cluster '%.40s' is neither NODESxGPUS, pool:GPUS nor a file of nodes", text);
    return read_list(nodes, text, err);
}

void nodes_fill_cluster(const struct sim_nodes *nodes, struct cluster *cluster)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct sim_node *from = &nodes->items[i];
        struct cluster_node *node = cluster_set_node(cluster, from->name, from->cpu_milli, from->memory);
        for (uint32_t gpu = 0; gpu < from->gpus; gpu++) {
            char uuid[48];
            (void)snprintf(uuid, sizeof(uuid), "GPU-%zu-%u", i, gpu);
            (void)cluster_set_gpu(cluster, node, gpu, uuid, from->model, GPU_MEMORY, true);
        }
        cluster_touch(cluster, node);
    }
}

void nodes_clear(struct sim_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        free(nodes->items[i].name);
        free(nodes->items[i].model);
    }
    free(nodes->items);
    *nodes = (struct sim_nodes){ 0 };
}
