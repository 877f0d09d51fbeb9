/* SPDX-License-Identifier: MIT */
/* The words are those of nvidia-smi topo -m, as far as mgpu knows the connections. */
#include "cli/cluster/gpu_topology.h"

#include <inttypes.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/term/table.h"

#define GPUS_MAX 64U // of a node, in the table

static bool is_linked(const json_t *a, const json_t *b)
{
    const json_t *link;
    size_t i;
    json_array_foreach(json_object_get(a, "links"), i, link)
    {
        if (json_integer_value(link) == field_integer(b, "index", -1))
            return true;
    }
    return false;
}

static bool is_equal(const json_t *a, const json_t *b, const char *name)
{
    int64_t value = field_integer(a, name, -1);
    return value >= 0 && value == field_integer(b, name, -1);
}

/* The UUID of the GPU itself, or of the GPU that an instance is part of. */
static const char *board_of(const json_t *gpu)
{
    const char *parent = field_text(json_object_get(gpu, "mig"), "parent");
    return parent != NULL ? parent : field_text(gpu, "uuid");
}

static const char *connection_of(const json_t *a, const json_t *b)
{
    if (a == b)
        return "X";
    if (board_of(a) != NULL && text_equal(board_of(a), board_of(b)))
        return "MIG";
    if (is_linked(a, b))
        return "NV";
    if (is_equal(a, b, "pcie_switch"))
        return "PIX";
    if (is_equal(a, b, "numa"))
        return "NODE";
    return field_is_known(a, "numa") && field_is_known(b, "numa") ? "SYS" : "-";
}

/* The interfaces of a node, or NULL. */
static const json_t *find_nics(const json_t *nodes, const char *name)
{
    const json_t *node;
    size_t i;
    json_array_foreach(nodes, i, node)
    {
        if (field_is(node, "name", name))
            return json_object_get(node, "nics");
    }
    return NULL;
}

/* "eth0 (mlx5_0, 200 Gb/s)"; the caller frees it. */
static char *name_nic(const json_t *nic)
{
    char speed[32] = "down";
    _cleanup_free_ char *name = field_shown(nic, "name");
    _cleanup_free_ char *rdma = field_is_known(nic, "rdma") ? field_shown(nic, "rdma") : NULL;
    double megabits = 0;
    bool has_speed = field_measured(nic, "speed_mbit", &megabits);
    if (json_is_true(json_object_get(nic, "up")) && !has_speed)
        (void)snprintf(speed, sizeof(speed), "up");
    else if (json_is_true(json_object_get(nic, "up")))
        (void)snprintf(speed, sizeof(speed), "%g Gb/s", megabits / 1000);
    return rdma != NULL ? xasprintf("%s (%s, %s)", name, rdma, speed) : xasprintf("%s (%s)", name, speed);
}

static void add_nics(struct table *table, const json_t *nics, const json_t *const *gpus, size_t count)
{
    const json_t *nic;
    size_t i;
    json_array_foreach(nics, i, nic)
    {
        table_add(table, name_nic(nic), COLOR_NONE);
        for (size_t k = 0; k < count; k++)
            table_add(table, xstrdup(connection_of(nic, gpus[k])), COLOR_NONE);
        table_add(table, field_shown(nic, "numa"), COLOR_NONE);
    }
}

static void print_node(
    const json_t *const *gpus, size_t count, const json_t *nodes, const struct screen *screen, FILE *out)
{
    struct table_column columns[GPUS_MAX + 2] = { { .header = "GPU" } };
    char *headers[GPUS_MAX] = { NULL };
    for (size_t i = 0; i < count; i++) {
        headers[i] = xasprintf("%" PRId64, field_integer(gpus[i], "index", 0));
        columns[i + 1] = (struct table_column){ .header = headers[i] };
    }
    columns[count + 1] = (struct table_column){ .header = "NUMA", .is_right = true };
    struct table *table = table_new(columns, count + 2);
    for (size_t i = 0; i < count; i++) {
        _cleanup_free_ char *node = field_shown(gpus[i], "node");
        table_add(table, xasprintf("%s:%s", node, headers[i]), COLOR_NONE);
        for (size_t k = 0; k < count; k++)
            table_add(table, xstrdup(connection_of(gpus[i], gpus[k])), COLOR_NONE);
        table_add(table, field_shown(gpus[i], "numa"), COLOR_NONE);
    }
    add_nics(table, find_nics(nodes, field_text(gpus[0], "node")), gpus, count);
    table_print(table, screen, true, out);
    table_free(table);
    for (size_t i = 0; i < count; i++)
        free(headers[i]);
}

void gpu_topology_print(const json_t *gpus, const json_t *nodes, const struct screen *screen, FILE *out)
{
    const json_t *node[GPUS_MAX], *gpu;
    size_t i, count = 0;
    json_array_foreach(gpus, i, gpu)
    {
        bool is_other = count > 0 && !text_equal(field_text(node[0], "node"), field_text(gpu, "node"));
        if (is_other || count == GPUS_MAX) {
            print_node(node, count, nodes, screen, out);
            count = 0;
        }
        node[count++] = gpu;
    }
    if (count > 0)
        print_node(node, count, nodes, screen, out);
    (void)fputs("NV: NVLink. PIX: one PCIe switch. NODE: one NUMA node. SYS: between NUMA nodes. MIG: one "
                "GPU. -: not known\n",
        out);
}
