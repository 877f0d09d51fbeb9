/* SPDX-License-Identifier: MIT */
/* Books and releases allocations, and checks the ledger. */
#include "sched/cluster/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void allocation_clear(struct allocation *allocation)
{
    free(allocation->gpus);
    free(allocation->nodes);
    *allocation = (struct allocation){ 0 };
}

void allocation_copy(struct allocation *to, const struct allocation *from)
{
    *to = (struct allocation){ .n_gpus = from->n_gpus, .n_nodes = from->n_nodes };
    if (from->n_gpus > 0) {
        to->gpus = xcalloc(from->n_gpus, sizeof(*to->gpus));
        memcpy(to->gpus, from->gpus, from->n_gpus * sizeof(*to->gpus));
    }
    if (from->n_nodes > 0) {
        to->nodes = xcalloc(from->n_nodes, sizeof(*to->nodes));
        memcpy(to->nodes, from->nodes, from->n_nodes * sizeof(*to->nodes));
    }
}

static void book_gpu(struct cluster_gpu *gpu, const struct alloc_gpu *held)
{
    if (held->slot == 0) {
        gpu->is_exclusive = true;
        return;
    }
    gpu->share_slots |= 1ULL << held->slot;
    gpu->share_booked += held->share;
    gpu->memory_booked += held->memory;
}

static void release_gpu(struct cluster_gpu *gpu, const struct alloc_gpu *held)
{
    if (held->slot == 0) {
        gpu->is_exclusive = false;
        return;
    }
    gpu->share_slots &= ~(1ULL << held->slot);
    gpu->share_booked -= held->share;
    gpu->memory_booked -= held->memory;
}

void cluster_book(struct cluster *cluster, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        const struct alloc_gpu *held = &allocation->gpus[i];
        book_gpu(&cluster->nodes[held->node].gpus[held->gpu], held);
    }
    for (size_t i = 0; i < allocation->n_nodes; i++) {
        const struct alloc_node *held = &allocation->nodes[i];
        struct cluster_node *node = &cluster->nodes[held->node];
        node->cpu_booked += held->cpu_milli;
        node->memory_booked += held->memory;
        node->jobs++;
        node->is_exclusive |= held->is_exclusive;
        cluster_touch(cluster, node);
    }
}

void cluster_release(struct cluster *cluster, const struct allocation *allocation)
{
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        const struct alloc_gpu *held = &allocation->gpus[i];
        release_gpu(&cluster->nodes[held->node].gpus[held->gpu], held);
    }
    for (size_t i = 0; i < allocation->n_nodes; i++) {
        const struct alloc_node *held = &allocation->nodes[i];
        struct cluster_node *node = &cluster->nodes[held->node];
        node->cpu_booked -= held->cpu_milli;
        node->memory_booked -= held->memory;
        node->jobs--;
        node->is_exclusive &= !held->is_exclusive;
        cluster_touch(cluster, node);
    }
}

static int check_gpu(const struct cluster_gpu *gpu, struct error *err)
{
    if (gpu->is_exclusive && gpu->share_slots != 0)
        return error_set(err, -EBADMSG, "GPU %s is both exclusive and shared", gpu->uuid);
    if (gpu->share_slots == 0 && (gpu->memory_booked != 0 || gpu->share_booked != 0))
        return error_set(err, -EBADMSG, "GPU %s has a fraction allocated without a share", gpu->uuid);
    if (gpu->share_booked > SHARE_WHOLE)
        return error_set(
            err, -EBADMSG, "GPU %s has %u of 1000 thousandths allocated", gpu->uuid, gpu->share_booked);
    if (gpu->is_present && gpu->memory_bytes > 0 && gpu->memory_booked > gpu->memory_bytes)
        return error_set(err, -EBADMSG, "GPU %s has more memory allocated than it has", gpu->uuid);
    return 0;
}

int cluster_invariant(const struct cluster *cluster, struct error *err)
{
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        for (size_t k = 0; k < node->n_gpus; k++) {
            int rc = check_gpu(&node->gpus[k], err);
            if (rc < 0)
                return rc;
        }
        if (node->is_described && node->cpu_booked > node->cpu_milli)
            return error_set(err, -EBADMSG, "node %s has %u of %u thousandths of a CPU allocated", node->name,
                node->cpu_booked, node->cpu_milli);
        if (node->is_described && node->memory > 0 && node->memory_booked > node->memory)
            return error_set(err, -EBADMSG, "node %s has more memory allocated than it has", node->name);
        if (node->is_exclusive && node->jobs != 1)
            return error_set(err, -EBADMSG, "node %s has %u jobs beside one with exclusive use of it",
                node->name, node->jobs - 1);
        if (node->jobs == 0 &&
            (node->cpu_booked != node->cpu_kept || node->memory_booked != node->memory_kept))
            return error_set(err, -EBADMSG, "node %s has resources allocated without a job", node->name);
    }
    return 0;
}
