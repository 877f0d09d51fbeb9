/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/memory.h"
#include "sched/cluster/cluster.h"

static struct cluster_bar *find(const struct cluster_node *node, uint32_t uid)
{
    for (size_t i = 0; i < node->n_bars; i++)
        if (node->bars[i].uid == uid)
            return &node->bars[i];
    return NULL;
}

const struct cluster_bar *cluster_find_bar(const struct cluster_node *node, uint32_t uid)
{
    const struct cluster_bar *bar = find(node, CLUSTER_ALL_USERS);
    return bar != NULL ? bar : find(node, uid);
}

void cluster_bar(
    struct cluster *cluster, struct cluster_node *node, uint32_t uid, int64_t until_ms, const char *why)
{
    struct cluster_bar *bar = find(node, uid);
    if (bar == NULL) {
        node->bars = xreallocarray(node->bars, node->n_bars + 1, sizeof(*node->bars));
        bar = &node->bars[node->n_bars++];
        *bar = (struct cluster_bar){ .uid = uid };
    }
    free(bar->why);
    bar->why = xstrdup(why);
    bar->until_ms = until_ms;
    cluster_touch(cluster, node);
}

bool cluster_unbar(struct cluster *cluster, struct cluster_node *node, uint32_t uid)
{
    struct cluster_bar *bar = find(node, uid);
    if (bar == NULL)
        return false;
    free(bar->why);
    *bar = node->bars[--node->n_bars];
    cluster_touch(cluster, node);
    return true;
}
