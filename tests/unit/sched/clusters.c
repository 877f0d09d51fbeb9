/* SPDX-License-Identifier: MIT */
#include "clusters.h"
#include "unit_test.h"

#include <stdio.h>

int clusters_open(void **state)
{
    static struct cluster cluster;
    cluster_init(&cluster);
    *state = &cluster;
    return 0;
}

int clusters_close(void **state)
{
    struct error err;
    assert_int_equal(cluster_invariant(*state, &err), 0);
    cluster_clear(*state);
    return 0;
}

uint32_t clusters_draw(uint32_t *seed, uint32_t limit)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 8) % limit;
}

struct cluster_node *clusters_add(struct cluster *cluster, const char *name, uint32_t gpus)
{
    struct cluster_node *node = cluster_set_node(cluster, name, 16000, 64 * GIB);
    for (uint32_t i = 0; i < gpus; i++) {
        char uuid[64];
        (void)snprintf(uuid, sizeof(uuid), "%s-%u", name, i);
        cluster_set_gpu(cluster, node, i, uuid, "NVIDIA H200", 100 * GIB, true);
    }
    return node;
}

struct fit clusters_fit(void)
{
    return (struct fit){ .now_ms = 0, .end_ms = 1000, .limit_ms = TIME_NEVER };
}

bool clusters_place(struct cluster *cluster, const struct placement *placement, struct sched_request request,
    struct allocation *ret)
{
    struct fit fit = clusters_fit();
    uint64_t work = 0;
    *ret = (struct allocation){ 0 };
    void *state = placement->open != NULL ? placement->open() : NULL;
    bool is_placed = placement_choose(placement, state, cluster, &request, &fit, ret, &work);
    if (placement->close != NULL)
        placement->close(state);
    if (!is_placed)
        return false;
    cluster_book(cluster, ret);
    return true;
}

void clusters_fill(struct cluster *cluster, const char *name, uint32_t gpus)
{
    struct cluster_node *node = cluster_find(cluster, name);
    for (size_t i = 0; i < node->n_gpus && gpus > 0; i++) {
        gpus -= !node->gpus[i].is_exclusive;
        node->gpus[i].is_exclusive = true;
    }
    cluster_touch(cluster, node);
}
