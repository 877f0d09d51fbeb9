/* SPDX-License-Identifier: MIT */
/*
 * The ledger. GPUs are identified by UUID: an index may change when a card is added, a booking must not. A
 * booking for a node that has not connected yet (after a restart) is kept on a placeholder, so that nothing
 * is allocated twice when it connects. Names are hashed with open addressing; nodes are never removed.
 */
#include "sched/cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/cluster_change.h"
#include "job/gpu_instance.h"
#include "sched/cluster/node_index.h"
#include "sched/cluster/partition.h"

void cluster_init(struct cluster *cluster)
{
    *cluster = (struct cluster){ .index = node_index_new() };
    cluster->widths = xcalloc(NODE_GPUS_LIMIT + 1, sizeof(*cluster->widths));
    cluster->models = xcalloc(1, sizeof(*cluster->models));
    cluster->models[0] = xstrdup("");
    cluster->n_models = 1;
}

static void clear_node(struct cluster_node *node)
{
    for (size_t k = 0; k < node->n_gpus; k++) {
        free(node->gpus[k].uuid);
        free(node->gpus[k].bookings);
    }
    free(node->gpus);
    for (size_t k = 0; k < node->n_bars; k++)
        free(node->bars[k].why);
    free(node->bars);
    free(node->name);
}

void cluster_clear(struct cluster *cluster)
{
    cluster_set_partitions(cluster, NULL, 0);
    for (size_t i = 0; i < cluster->n_nodes; i++)
        clear_node(&cluster->nodes[i]);
    for (size_t i = 0; i < cluster->n_models; i++)
        free(cluster->models[i]);
    free(cluster->nodes);
    free(cluster->models);
    free(cluster->gpu_sizes);
    name_table_clear(&cluster->names);
    free(cluster->widths);
    free(cluster->dirty);
    node_index_free(cluster->index);
    *cluster = (struct cluster){ 0 };
}

/* --- nodes by name --- */

struct cluster_node *cluster_find(const struct cluster *cluster, const char *name)
{
    size_t at = name_table_find(&cluster->names, name);
    return at != NAME_NONE ? &cluster->nodes[at] : NULL;
}

struct cluster_node *cluster_node(struct cluster *cluster, const char *name)
{
    struct cluster_node *node = cluster_find(cluster, name);
    if (node != NULL)
        return node;
    if ((cluster->n_nodes & (cluster->n_nodes - 1)) == 0) { // full: the capacity is always a power of two
        size_t room = cluster->n_nodes > 0 ? 2 * cluster->n_nodes : 1;
        cluster->nodes = xreallocarray(cluster->nodes, room, sizeof(*cluster->nodes));
        cluster->dirty = xreallocarray(cluster->dirty, room, sizeof(*cluster->dirty));
    }
    uint32_t position = (uint32_t)cluster->n_nodes++;
    node = &cluster->nodes[position];
    *node = (struct cluster_node){ .name = xstrdup(name), .position = position, .hold_from_ms = TIME_NEVER };
    name_table_add(&cluster->names, node->name, position);
    cluster_place_node(cluster, node);
    cluster_touch(cluster, node);
    return node;
}

/* --- GPUs --- */

struct cluster_gpu *cluster_find_gpu(const struct cluster_node *node, const char *uuid)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        if (strcmp(node->gpus[i].uuid, uuid) == 0)
            return &node->gpus[i];
    return NULL;
}

struct cluster_gpu *cluster_find_index(const struct cluster_node *node, uint32_t index)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        if (node->gpus[i].is_known && node->gpus[i].index == index)
            return &node->gpus[i];
    return NULL;
}

struct cluster_gpu *cluster_gpu(struct cluster_node *node, uint32_t index, const char *uuid)
{
    struct cluster_gpu *gpu = cluster_find_gpu(node, uuid);
    if (gpu != NULL)
        return gpu;
    node->gpus = xreallocarray(node->gpus, node->n_gpus + 1, sizeof(*gpu));
    gpu = &node->gpus[node->n_gpus++];
    *gpu = (struct cluster_gpu){ .index = index,
        .uuid = xstrdup(uuid),
        .hold_from_ms = TIME_NEVER,
        .return_ms = TIME_NEVER,
        .numa = -1,
        .pcie_switch = -1 };
    return gpu;
}

static uint16_t find_model(struct cluster *cluster, const char *model)
{
    for (size_t i = 0; i < cluster->n_models; i++)
        if (strcmp(cluster->models[i], model) == 0)
            return (uint16_t)i;
    cluster->models = xreallocarray(cluster->models, cluster->n_models + 1, sizeof(*cluster->models));
    cluster->models[cluster->n_models] = xstrdup(model);
    cluster->has_instances |= gpu_instance_profile(model) != NULL;
    return (uint16_t)cluster->n_models++;
}

static void note_size(struct cluster *cluster, uint64_t bytes)
{
    size_t at = 0;
    while (at < cluster->n_gpu_sizes && cluster->gpu_sizes[at] < bytes)
        at++;
    if (bytes == 0 || (at < cluster->n_gpu_sizes && cluster->gpu_sizes[at] == bytes))
        return;
    size_t moved = cluster->n_gpu_sizes - at;
    cluster->gpu_sizes =
        xreallocarray(cluster->gpu_sizes, cluster->n_gpu_sizes + 1, sizeof(*cluster->gpu_sizes));
    memmove(&cluster->gpu_sizes[at + 1], &cluster->gpu_sizes[at], moved * sizeof(*cluster->gpu_sizes));
    cluster->gpu_sizes[at] = bytes;
    cluster->n_gpu_sizes++;
}

static void add_totals(struct cluster *cluster, const struct cluster_node *node, int sign)
{
    cluster->totals.gpus += sign * (double)node->n_gpus;
    cluster->totals.cpu_milli += sign * (double)node->cpu_milli;
    cluster->totals.memory += sign * (double)node->memory;
}

struct cluster_node *cluster_set_node(
    struct cluster *cluster, const char *name, uint32_t cpu_milli, uint64_t memory)
{
    struct cluster_node *node = cluster_node(cluster, name);
    if (node->is_gone)
        add_totals(cluster, node, 1);
    node->is_gone = false;
    node->is_up = true;
    node->is_described = true;
    node->jobs_max = cluster->node_jobs_max;
    node->starts_max = cluster->node_starts_max;
    cluster->totals.cpu_milli += (double)cpu_milli - node->cpu_milli;
    cluster->totals.memory += (double)memory - (double)node->memory;
    node->cpu_milli = cpu_milli;
    node->memory = memory;
    cluster_touch(cluster, node);
    return node;
}

void cluster_keep(struct cluster *cluster, struct cluster_node *node, uint32_t cpu_milli, uint64_t memory)
{
    node->cpu_booked += cpu_milli - node->cpu_kept;
    node->memory_booked += memory - node->memory_kept;
    node->cpu_kept = cpu_milli;
    node->memory_kept = memory;
    cluster_touch(cluster, node);
}

struct cluster_gpu *cluster_set_gpu(struct cluster *cluster, struct cluster_node *node, uint32_t index,
    const char *uuid, const char *model, uint64_t memory_bytes, bool is_present)
{
    size_t n_before = node->n_gpus;
    struct cluster_gpu *gpu = cluster_gpu(node, index, uuid);
    cluster->totals.gpus += (double)(node->n_gpus - n_before);
    gpu->index = index;
    gpu->is_known = true;
    gpu->is_present = is_present;
    gpu->model = find_model(cluster, model != NULL ? model : "");
    gpu->memory_bytes = memory_bytes;
    note_size(cluster, memory_bytes);
    cluster_touch(cluster, node);
    return gpu;
}

void cluster_limit_jobs(struct cluster *cluster, uint32_t jobs_max)
{
    cluster->node_jobs_max = jobs_max;
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        cluster->nodes[i].jobs_max = jobs_max;
        cluster_touch(cluster, &cluster->nodes[i]);
    }
}

bool cluster_node_is_full(const struct cluster_node *node)
{
    return node->jobs_max > 0 && node->jobs >= node->jobs_max;
}

void cluster_limit_starts(struct cluster *cluster, uint32_t starts_max)
{
    cluster->node_starts_max = starts_max;
    for (size_t i = 0; i < cluster->n_nodes; i++) {
        cluster->nodes[i].starts_max = starts_max;
        cluster_touch(cluster, &cluster->nodes[i]);
    }
}

bool cluster_node_is_starting(const struct cluster_node *node)
{
    return node->starts_max > 0 && node->starts >= node->starts_max;
}

void cluster_start_begins(struct cluster_node *node)
{
    node->starts++;
}

void cluster_start_ends(struct cluster *cluster, struct cluster_node *node)
{
    bool was_starting = cluster_node_is_starting(node);
    node->starts--;
    if (was_starting)
        cluster_touch(cluster, node);
}

void cluster_forget_gpus(struct cluster_node *node)
{
    for (size_t i = 0; i < node->n_gpus; i++)
        node->gpus[i].is_known = node->gpus[i].is_present = false;
}

void cluster_remove_node(struct cluster *cluster, const char *name)
{
    struct cluster_node *node = cluster_find(cluster, name);
    if (node == NULL || node->is_gone)
        return;
    add_totals(cluster, node, -1);
    cluster_forget_gpus(node);
    node->is_gone = true;
    node->is_up = false;
    cluster_touch(cluster, node);
}

bool cluster_gpu_is_empty(const struct cluster_gpu *gpu)
{
    return !gpu->is_exclusive && gpu->share_slots == 0;
}

bool cluster_gpu_is_whole(const struct cluster_gpu *gpu)
{
    return cluster_gpu_is_empty(gpu) && gpu->memory_external == 0;
}

bool cluster_gpu_takes_share(const struct cluster_gpu *gpu)
{
    if (gpu->is_exclusive || (gpu->share_slots | 1) == UINT64_MAX)
        return false;
    if ((gpu->closed & DEVICE_ALONE) != 0)
        return false;
    return gpu->share_slots == 0 || (gpu->closed & DEVICE_CROWDED) == 0;
}

uint64_t cluster_gpu_memory_left(const struct cluster_gpu *gpu)
{
    uint64_t left = gpu->memory_booked < gpu->memory_bytes ? gpu->memory_bytes - gpu->memory_booked : 0;
    return gpu->memory_external < left ? left - gpu->memory_external : 0;
}

bool cluster_gpu_is_open(const struct cluster_node *node, const struct cluster_gpu *gpu)
{
    bool is_closed = gpu->is_paused || (gpu->closed & ~(uint32_t)(DEVICE_CROWDED | DEVICE_ALONE)) != 0;
    return gpu->is_present && !is_closed && node->is_up && !node->is_drained;
}

bool cluster_gpu_is_adoptee(const struct cluster_gpu *gpu, const struct sched_request *request)
{
    return request->adopted_pid != 0 && gpu->adoptee == request->adopted_pid;
}

/* --- the index's row --- */

/* The amount that no job has or keeps. */
static uint64_t left_of(uint64_t all, uint64_t booked, uint64_t held)
{
    return booked < all && held < all - booked ? all - booked - held : 0;
}

static void offer_gpu(const struct cluster_gpu *gpu, enum cluster_held held, struct node_offer *offer)
{
    bool is_kept = held == HELD_IS_TAKEN && gpu->hold_from_ms < TIME_NEVER;
    offer->open++;
    offer->whole += cluster_gpu_is_whole(gpu) && !is_kept;
    if (!cluster_gpu_takes_share(gpu))
        return;
    uint32_t share = (uint32_t)left_of(SHARE_WHOLE, gpu->share_booked, is_kept ? gpu->hold_share : 0);
    if (share == 0) // its memory is then unusable
        return;
    uint64_t memory = left_of(cluster_gpu_memory_left(gpu), 0, is_kept ? gpu->hold_memory : 0);
    uint64_t part = gpu->memory_bytes > 0 ? ((memory + 1) * SHARE_WHOLE - 1) / gpu->memory_bytes + 1 : share;
    part = part < share ? part : share;
    offer->share = share > offer->share ? share : offer->share;
    offer->part = part > offer->part ? (uint32_t)part : offer->part;
    offer->gpu_mem = memory > offer->gpu_mem ? memory : offer->gpu_mem;
}

void cluster_offer(const struct cluster_node *node, enum cluster_held held, struct node_offer *ret)
{
    struct node_offer offer = { 0 };
    bool is_kept = held == HELD_IS_TAKEN && node->hold_from_ms < TIME_NEVER;
    uint32_t jobs = node->jobs + (is_kept ? node->hold_jobs : 0);
    bool is_full = node->jobs_max > 0 && jobs >= node->jobs_max;
    is_full |= node->is_exclusive || (is_kept && node->hold_is_exclusive);
    if (node->is_up && !node->is_drained && !is_full) {
        offer.cpu_milli =
            (uint32_t)left_of(node->cpu_milli, node->cpu_booked, is_kept ? node->hold_cpu_milli : 0);
        offer.memory = left_of(node->memory, node->memory_booked, is_kept ? node->hold_memory : 0);
        if (node->memory == 0)
            offer.memory = UINT64_MAX;
    }
    for (size_t i = 0; i < node->n_gpus; i++) {
        const struct cluster_gpu *gpu = &node->gpus[i];
        if (!gpu->is_known)
            continue;
        offer.gpus++;
        offer.models |= 1ULL << (gpu->model % 64);
        if (cluster_gpu_is_open(node, gpu) && !is_full)
            offer_gpu(gpu, held, &offer);
    }
    *ret = offer;
}

static void mark_dirty(struct cluster *cluster, struct cluster_node *node)
{
    bool is_marked = node->dirty_at < cluster->n_dirty && cluster->dirty[node->dirty_at] == node->position;
    if (is_marked)
        return;
    node->dirty_at = (uint32_t)cluster->n_dirty;
    cluster->dirty[cluster->n_dirty++] = node->position;
}

uint32_t cluster_width(const struct cluster *cluster)
{
    uint32_t width = 0;
    for (uint32_t k = 1; k <= NODE_GPUS_LIMIT; k++) {
        if (cluster->widths[k] == 0)
            continue;
        if (width != 0)
            return 0;
        width = k;
    }
    return width;
}

void cluster_touch(struct cluster *cluster, struct cluster_node *node)
{
    struct node_offer offer;
    if (cluster->is_postponed)
        return;
    cluster_offer(node, HELD_IS_FREE, &offer);
    if (node->is_counted)
        cluster->widths[node_index_offer(cluster->index, node->position)->open]--;
    node->is_counted = true;
    cluster->widths[offer.open]++;
    node_index_set(cluster->index, node->position, &offer);
    cluster->version++;
    mark_dirty(cluster, node);
}

void cluster_postpone(struct cluster *cluster)
{
    cluster->is_postponed = true;
}

void cluster_catch_up(struct cluster *cluster)
{
    cluster->is_postponed = false;
    for (size_t i = 0; i < cluster->n_nodes; i++)
        cluster_touch(cluster, &cluster->nodes[i]);
}
