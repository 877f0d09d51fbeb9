/* SPDX-License-Identifier: MIT */
/*
 * The ledger. GPUs are known by UUID: an index may move when a card is added, a booking must not. A booking
 * for a node that has not connected yet (after a restart) is kept on a placeholder, so that nothing is given
 * twice when it comes back.
 */
#include "sched/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"

void cluster_clear(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        struct cluster_node *node = &cluster->nodes[i];
        for (size_t k = 0; k < node->n_gpus; k++)
            free(node->gpus[k].uuid);
        free(node->gpus);
        free(node->name);
    }
    free(cluster->nodes);
    *cluster = (struct cluster){ 0 };
}

struct cluster_node *cluster_find(const struct cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (strcmp(cluster->nodes[i].name, name) == 0)
            return &cluster->nodes[i];
    return NULL;
}

struct cluster_gpu *cluster_find_gpu(const struct cluster_node *node, const char *uuid)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        if (strcmp(node->gpus[i].uuid, uuid) == 0)
            return &node->gpus[i];
    return NULL;
}

static struct cluster_node *find_or_add_node(struct cluster *cluster, const char *name)
{
    struct cluster_node *node = cluster_find(cluster, name);
    if (node != NULL)
        return node;
    cluster->nodes = xreallocarray(cluster->nodes, cluster->n_nodes + 1, sizeof(*node));
    node = &cluster->nodes[cluster->n_nodes++];
    *node = (struct cluster_node){ .name = xstrdup(name) };
    return node;
}

struct cluster_node *cluster_set_node(struct cluster *cluster, const char *name, uint32_t cpus)
{
    struct cluster_node *node = find_or_add_node(cluster, name);
    node->is_up = true;
    node->is_described = true;
    node->cpus = cpus;
    return node;
}

static struct cluster_gpu *find_or_add_gpu(struct cluster_node *node, uint32_t index, const char *uuid)
{
    struct cluster_gpu *gpu = cluster_find_gpu(node, uuid);
    if (gpu != NULL)
        return gpu;
    node->gpus = xreallocarray(node->gpus, node->n_gpus + 1, sizeof(*gpu));
    size_t at = node->n_gpus++;
    while (at > 0 && node->gpus[at - 1].index > index) {
        node->gpus[at] = node->gpus[at - 1];
        at--;
    }
    node->gpus[at] = (struct cluster_gpu){ .index = index, .uuid = xstrdup(uuid) };
    return &node->gpus[at];
}

static int compare_index(const void *a, const void *b)
{
    const struct cluster_gpu *left = a, *right = b;
    return (left->index > right->index) - (left->index < right->index);
}

void cluster_set_gpu(
    struct cluster_node *node, uint32_t index, const char *uuid, uint64_t memory_bytes, bool is_present)
{
    struct cluster_gpu *gpu = find_or_add_gpu(node, index, uuid);
    gpu->is_known = true;
    gpu->is_present = is_present;
    gpu->memory_bytes = memory_bytes;
    if (gpu->index == index)
        return;
    gpu->index = index;
    qsort(node->gpus, node->n_gpus, sizeof(*gpu), compare_index);
}

void cluster_forget_gpus(struct cluster_node *node)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        node->gpus[i].is_known = node->gpus[i].is_present = false;
}

void cluster_book(struct cluster *cluster, const char *node_name, const struct record_list *grants)
{
    struct cluster_node *node = find_or_add_node(cluster, node_name);
    const struct gpu_grant *items = grants->items;
    if (grants->count == 0)
        node->cpu_jobs++;
    for (size_t i = 0; i < grants->count; i++) {
        struct cluster_gpu *gpu = find_or_add_gpu(node, items[i].index, items[i].uuid);
        if (items[i].slot == 0) {
            gpu->is_exclusive = true;
        } else {
            gpu->share_slots |= 1ULL << items[i].slot;
            gpu->memory_booked += items[i].memory;
        }
    }
}

void cluster_release(struct cluster *cluster, const char *node_name, const struct record_list *grants)
{
    struct cluster_node *node = cluster_find(cluster, node_name);
    const struct gpu_grant *items = grants->items;
    if (node == NULL)
        return;
    if (grants->count == 0 && node->cpu_jobs > 0)
        node->cpu_jobs--;
    for (size_t i = 0; i < grants->count; i++) {
        struct cluster_gpu *gpu = cluster_find_gpu(node, items[i].uuid);
        if (gpu == NULL)
            continue;
        if (items[i].slot == 0) {
            gpu->is_exclusive = false;
        } else {
            gpu->share_slots &= ~(1ULL << items[i].slot);
            gpu->memory_booked -= items[i].memory;
        }
    }
}

bool cluster_gpu_is_empty(const struct cluster_gpu *gpu)
{
    return !gpu->is_exclusive && gpu->share_slots == 0;
}

bool cluster_gpu_fits(const struct cluster_gpu *gpu, const struct sched_request *request)
{
    if (!gpu->is_present || gpu->is_exclusive)
        return false;
    if (request->gpu_mem == 0)
        return gpu->share_slots == 0;
    bool has_slot = (gpu->share_slots | 1) != UINT64_MAX;
    return has_slot && gpu->memory_booked <= gpu->memory_bytes &&
           request->gpu_mem <= gpu->memory_bytes - gpu->memory_booked;
}

static const struct cluster_gpu *find_index(const struct cluster_node *node, uint32_t index)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        if (node->gpus[i].is_known && node->gpus[i].index == index)
            return &node->gpus[i];
    return NULL;
}

/* How many GPUs of the idle node would do; *ret_lacking is an id that is asked for and is not there. */
static size_t count_suitable(
    const struct cluster_node *node, const struct sched_request *request, int64_t *ret_lacking)
{
    size_t suitable = 0;
    for (size_t i = 0; i < request->n_ids; i++) {
        const struct cluster_gpu *gpu = find_index(node, request->ids[i]);
        if (gpu == NULL)
            *ret_lacking = request->ids[i];
        else
            suitable += gpu->memory_bytes >= request->gpu_mem;
    }
    for (size_t i = 0; request->n_ids == 0 && i < node->n_gpus; i++)
        suitable += node->gpus[i].is_known && node->gpus[i].memory_bytes >= request->gpu_mem;
    return suitable;
}

static size_t count_known(const struct cluster_node *node, uint64_t *ret_largest)
{
    size_t known = 0;
    for (size_t i = 0; i < node->n_gpus; i++) {
        known += node->gpus[i].is_known;
        if (node->gpus[i].is_known && node->gpus[i].memory_bytes > *ret_largest)
            *ret_largest = node->gpus[i].memory_bytes;
    }
    return known;
}

int cluster_check(const struct cluster *cluster, const struct sched_request *request, struct error *err)
{
    if (cluster->n_nodes == 0 || request->gpus == 0)
        return 0;
    size_t most = 0;
    uint64_t largest = 0;
    int64_t lacking = -1;
    const struct cluster_node *widest = &cluster->nodes[0];
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        const struct cluster_node *node = &cluster->nodes[i];
        if (!node->is_described || count_suitable(node, request, &lacking) >= request->gpus)
            return 0;
        size_t known = count_known(node, &largest);
        if (known > most) {
            most = known;
            widest = node;
        }
    }
    if (most < request->gpus) {
        (void)error_set(err, -ERANGE, "no machine here can ever run it: %u GPU%s asked, %s has %zu",
            request->gpus, request->gpus == 1 ? "" : "s", widest->name, most);
        return error_hint(err,
            most > 0 ? "ask for at most %zu GPUs, or see them: mgpu gpus"
                     : "%zu GPUs were found; for a job without a GPU use -g 0, or see: mgpu doctor",
            most);
    }
    if (lacking >= 0) {
        (void)error_set(
            err, -ERANGE, "there is no GPU %d on %s; it has %zu", (int)lacking, widest->name, most);
        return error_hint(err, "see the GPUs and their numbers: mgpu gpus");
    }
    char asked[32], biggest[32];
    format_size(request->gpu_mem, asked, sizeof(asked));
    format_size(largest, biggest, sizeof(biggest));
    (void)error_set(err, -ERANGE, "no machine here has %u GPU%s with %s of memory; the largest has %s",
        request->gpus, request->gpus == 1 ? "" : "s", asked, biggest);
    return error_hint(err, "see the GPUs and their memory: mgpu gpus");
}

int cluster_invariant(const struct cluster *cluster, struct error *err)
{
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        for (size_t k = 0; k < cluster->nodes[i].n_gpus; k++) {
            const struct cluster_gpu *gpu = &cluster->nodes[i].gpus[k];
            if (gpu->is_exclusive && gpu->share_slots != 0)
                return error_set(err, -EBADMSG, "GPU %s is exclusive and shared at once", gpu->uuid);
            if (gpu->share_slots == 0 && gpu->memory_booked != 0)
                return error_set(err, -EBADMSG, "GPU %s has memory booked without a share", gpu->uuid);
            if (gpu->is_present && gpu->memory_booked > gpu->memory_bytes)
                return error_set(err, -EBADMSG, "GPU %s has more memory booked than it has", gpu->uuid);
        }
    }
    return 0;
}
