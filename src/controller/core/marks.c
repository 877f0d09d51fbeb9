/* SPDX-License-Identifier: MIT */
/*
 * Marks on GPUs and nodes that survive all restarts: those of administrators (paused, drained, fenced,
 * released), policies for external processes, and faults for which mgpu has taken a GPU out of use. Every
 * change is an event of job 0, so the log alone determines the state of the cluster.
 */
#include "controller/core/marks.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"

/* --- lists of these --- */

static struct cluster_change *find(const struct change_list *list, const char *node, const char *uuid)
{
    for (size_t i = 0; i < list->count; i++)
        if (text_equal(list->items[i].node, node) && text_equal(list->items[i].uuid, uuid))
            return &list->items[i];
    return NULL;
}

static bool take_away(struct change_list *list, const char *node, const char *uuid)
{
    struct cluster_change *change = find(list, node, uuid);
    if (change == NULL)
        return false;
    cluster_change_clear(change);
    *change = list->items[--list->count];
    return true;
}

/* Replaces an earlier change of the same kind. */
static void put(struct change_list *list, const struct cluster_change *change)
{
    (void)take_away(list, change->node, change->uuid);
    list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
    record_copy(&cluster_change_record, &list->items[list->count++], change);
}

static void clear(struct change_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        cluster_change_clear(&list->items[i]);
    free(list->items);
    *list = (struct change_list){ 0 };
}

void core_clear_marks(struct core *core)
{
    clear(&core->marks);
    clear(&core->policies);
    clear(&core->faults);
}

/* --- marks of administrators --- */

/* A MIG instance has the marks and faults of its GPU too. */
static const struct cluster_change *find_with_parent(
    const struct core *core, const struct change_list *list, const char *node, const char *uuid)
{
    const struct cluster_change *own = find(list, node, uuid);
    if (own != NULL || list->count == 0)
        return own;
    const char *parent = core_parent_gpu(core, node, uuid);
    return parent != NULL ? find(list, node, parent) : NULL;
}

const struct cluster_change *core_mark(const struct core *core, const char *node, const char *uuid)
{
    return find_with_parent(core, &core->marks, node, uuid);
}

const struct cluster_change *core_gpu_mark(const struct core *core, const struct alloc_gpu *gpu, bool is_node)
{
    const struct cluster_node *node = &sched_cluster(core->sched)->nodes[gpu->node];
    return core_mark(core, node->name, is_node ? NULL : node->gpus[gpu->gpu].uuid);
}

bool core_is_held(const struct core *core, const struct core_node *node)
{
    const struct cluster_change *mark = core_mark(core, node->name, NULL);
    return mark != NULL && mark->is_held;
}

bool core_is_release_wished(
    const struct core *core, const struct core_node *node, const struct gpu_state *gpu)
{
    const struct cluster_change *mark = gpu->uuid != NULL ? core_mark(core, node->name, gpu->uuid) : NULL;
    return mark != NULL && mark->is_released;
}

bool core_is_released(const struct core *core, const struct core_node *node, const struct gpu_state *gpu)
{
    return gpu->is_released != 0 || core_is_release_wished(core, node, gpu);
}

struct marking {
    struct core *core;
    struct cluster_node *where;
};

static void mark_gpu(struct marking *marking, const char *uuid)
{
    struct cluster_gpu *gpu = cluster_find_gpu(marking->where, uuid);
    if (gpu != NULL)
        gpu->is_paused = core_mark(marking->core, marking->where->name, uuid) != NULL;
}

static void mark_instance(void *arg, const struct gpu_state *gpu)
{
    mark_gpu(arg, gpu->uuid);
}

/* Applies a mark to the ledger; what is not known yet is marked when it appears. */
static void apply_mark(struct core *core, const char *node, const char *uuid)
{
    struct cluster *cluster = sched_cluster(core->sched);
    struct marking marking = { core, cluster_find(cluster, node) };
    if (marking.where == NULL)
        return;
    if (uuid == NULL)
        marking.where->is_drained = core_mark(core, node, NULL) != NULL;
    else
        mark_gpu(&marking, uuid);
    core_each_instance(core, node, uuid, mark_instance, &marking);
    cluster_touch(cluster, marking.where);
}

void core_set_mark(struct core *core, const struct cluster_change *change)
{
    bool is_set = change->kind == CHANGE_GPU_PAUSE || change->kind == CHANGE_NODE_DRAIN ||
                  change->kind == CHANGE_NODE_FENCE;
    if (is_set)
        put(&core->marks, change);
    else
        (void)take_away(&core->marks, change->node, change->uuid);
    apply_mark(core, change->node, change->uuid);
}

void core_put_change(
    struct core *core, const char *kind, const char *key, const struct cluster_change *change)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    (void)record_encode_readable(&cluster_change_record, change, &bytes, &(struct error){ 0 });
    store_batch_put(core_batch(core)->changes, kind, key, &bytes);
}

void core_make_mark(struct core *core, const struct cluster_change *change)
{
    const char *kind = change->uuid != NULL ? "gpu" : "node";
    _cleanup_free_ char *key =
        change->uuid != NULL ? xasprintf("%s/%s", change->node, change->uuid) : xstrdup(change->node);
    core_set_mark(core, change);
    core_change_cluster(core, change);
    core_hook_mark(core, change);
    if (find(&core->marks, change->node, change->uuid) != NULL)
        core_put_change(core, kind, key, change);
    else
        store_batch_remove(core_batch(core)->changes, kind, key);
}

/* --- policies of single GPUs --- */

enum external_policy core_gpu_policy(
    const struct core *core, const char *node, const char *uuid, bool *ret_is_own)
{
    const struct cluster_change *own = find(&core->policies, node, uuid);
    enum external_policy policy = own != NULL ? external_policy_find(own->text) : EXTERNAL_POLICIES;
    if (ret_is_own != NULL)
        *ret_is_own = policy != EXTERNAL_POLICIES;
    return policy != EXTERNAL_POLICIES ? policy : core->options.external.policy;
}

bool core_keep_policy(struct core *core, const struct cluster_change *change)
{
    bool is_own = external_policy_find(change->text) != EXTERNAL_POLICIES;
    if (is_own)
        put(&core->policies, change);
    else
        (void)take_away(&core->policies, change->node, change->uuid);
    return is_own;
}

/* --- faults: why mgpu has drained a GPU --- */

const struct cluster_change *core_fault(const struct core *core, const char *node, const char *uuid)
{
    return find_with_parent(core, &core->faults, node, uuid);
}

const struct cluster_change *core_own_fault(const struct core *core, const char *node, const char *uuid)
{
    return find(&core->faults, node, uuid);
}

const struct cluster_change *core_gpu_fault(const struct core *core, const struct alloc_gpu *gpu)
{
    const struct cluster_node *node = &sched_cluster(core->sched)->nodes[gpu->node];
    return core_fault(core, node->name, node->gpus[gpu->gpu].uuid);
}

void core_keep_fault(struct core *core, const struct cluster_change *change)
{
    put(&core->faults, change);
}

bool core_end_fault(struct core *core, const char *node, const char *uuid)
{
    if (!take_away(&core->faults, node, uuid))
        return false;
    _cleanup_free_ char *key = xasprintf("%s/%s", node, uuid);
    store_batch_remove(core_batch(core)->changes, CORE_KEPT_FAULT, key);
    return true;
}
