/* SPDX-License-Identifier: MIT */
/*
 * Partitions: named sets of nodes. A node has a bit for each that contains it, and a request one for each
 * that it names, so that a fit is one comparison. The bits follow the order of the table, so
 * sched_set_partitions, which replaces it, also updates the requests.
 */
#include "sched/cluster/partition.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/share.h"

static bool contains(const struct cluster_partition *partition, const char *node)
{
    for (size_t i = 0; i < partition->nodes.count; i++)
        if (strcmp(partition->nodes.items[i], node) == 0)
            return true;
    return partition->nodes.count == 0;
}

void cluster_place_node(const struct cluster *cluster, struct cluster_node *node)
{
    node->partitions = 0;
    for (size_t i = 0; i < cluster->n_partitions; i++)
        if (contains(&cluster->partitions[i], node->name))
            node->partitions |= UINT64_C(1) << i;
}

static void clear(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->n_partitions; i++) {
        free(cluster->partitions[i].name);
        strings_clear(&cluster->partitions[i].nodes);
    }
    free(cluster->partitions);
    cluster->partitions = NULL;
    cluster->n_partitions = 0;
}

void cluster_set_partitions(struct cluster *cluster, const struct cluster_partition *partitions, size_t count)
{
    assert(count <= PARTITIONS_MAX);
    clear(cluster);
    if (count > 0)
        cluster->partitions = xcalloc(count, sizeof(*partitions));
    for (size_t i = 0; i < count; i++) {
        struct cluster_partition *copy = &cluster->partitions[cluster->n_partitions++];
        copy->name = xstrdup(partitions[i].name);
        copy->priority = partitions[i].priority;
        strings_copy(&copy->nodes, &partitions[i].nodes);
    }
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        cluster_place_node(cluster, &cluster->nodes[i]);
        cluster_touch(cluster, &cluster->nodes[i]);
    }
}

uint64_t cluster_partition_bits(const struct cluster *cluster, const char *names, int32_t *ret_priority)
{
    uint64_t bits = 0;
    *ret_priority = 0;
    while (names != NULL && *names != '\0') {
        size_t length = strcspn(names, ",");
        for (size_t i = 0; i < cluster->n_partitions; i++) {
            const struct cluster_partition *partition = &cluster->partitions[i];
            if (strlen(partition->name) != length || strncmp(partition->name, names, length) != 0)
                continue;
            if (bits == 0 || partition->priority > *ret_priority)
                *ret_priority = partition->priority;
            bits |= UINT64_C(1) << i;
        }
        names += length + (names[length] == ',');
    }
    return bits;
}

/* "gpu1,gpu3" contains this name. */
static bool is_named(const char *names, const char *name)
{
    size_t length = strlen(name);
    while (*names != '\0') {
        size_t here = strcspn(names, ",");
        if (here == length && strncmp(names, name, length) == 0)
            return true;
        names += here + (names[here] == ',');
    }
    return false;
}

/* A node whose agent has not reported its abilities may have them. */
static bool enforces(const struct cluster_node *node, uint32_t kind)
{
    bool is_any = kind == SHARE_NONE || kind >= SHARE_AUTO;
    return is_any || node->shares == 0 || (node->shares >> kind & 1) != 0;
}

bool cluster_node_admits(const struct cluster_node *node, const struct sched_request *request)
{
    return !node->is_gone && (request->partition == NULL || (node->partitions & request->partitions) != 0) &&
           (request->nodelist == NULL || is_named(request->nodelist, node->name)) &&
           (request->exclude == NULL || !is_named(request->exclude, node->name)) &&
           enforces(node, request->share_kind) &&
           (!request->heeds_bars || node->n_bars == 0 || cluster_find_bar(node, request->uid) == NULL);
}
