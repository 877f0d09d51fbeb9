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

/* --- marks of administrators --- */

/* Replaces the existing mark; `change` NULL: removes it. */
static void put(struct cluster_change **place, const struct cluster_change *change)
{
    struct cluster_change *old = *place;
    *place = NULL;
    if (change != NULL) {
        *place = xcalloc(1, sizeof(**place));
        record_copy(&cluster_change_record, *place, change);
    }
    if (old != NULL)
        cluster_change_clear(old);
    free(old);
}

bool core_is_held(const struct core_node *node)
{
    return node->mark != NULL && node->mark->is_held;
}

bool core_is_release_requested(const struct core_node *node, const struct core_gpu *gpu)
{
    const struct cluster_change *mark = core_gpu_mark(node, gpu);
    return mark != NULL && mark->is_released;
}

bool core_is_released(const struct core_node *node, const struct core_gpu *gpu)
{
    return gpu->state->is_released != 0 || core_is_release_requested(node, gpu);
}

struct marking {
    const struct core_node *node;
    struct cluster_node *ledger;
};

static void mark_gpu(void *arg, struct core_gpu *gpu)
{
    const struct marking *marking = arg;
    struct cluster_gpu *books = core_gpu_books(marking->ledger, gpu);
    if (books != NULL)
        books->is_paused = core_gpu_mark(marking->node, gpu) != NULL;
}

/* Applies a mark to the ledger; a GPU or node that is not known yet is marked when it appears. */
static void apply_mark(struct core *core, const struct core_node *node, struct core_gpu *gpu)
{
    struct cluster *cluster = sched_cluster(core->sched);
    struct marking marking = { node, cluster_find(cluster, node->name) };
    if (marking.ledger == NULL)
        return;
    if (gpu == NULL) {
        marking.ledger->is_drained = node->mark != NULL;
    } else {
        mark_gpu(&marking, gpu);
        core_each_instance(node, gpu, mark_gpu, &marking);
    }
    cluster_touch(cluster, marking.ledger);
}

static bool sets_mark(const struct cluster_change *change)
{
    return change->kind == CHANGE_GPU_PAUSE || change->kind == CHANGE_NODE_DRAIN ||
           change->kind == CHANGE_NODE_FENCE;
}

void core_set_mark(struct core *core, const struct cluster_change *change)
{
    bool is_set = sets_mark(change);
    struct core_node *node = core_add_node(core, change->node);
    struct core_gpu *gpu = change->uuid != NULL ? core_take_gpu(node, change->uuid) : NULL;
    put(gpu != NULL ? &gpu->mark : &node->mark, is_set ? change : NULL);
    if (is_set && change->until_ms != 0 && change->until_ms < core->marks_due_ms)
        core->marks_due_ms = change->until_ms;
    apply_mark(core, node, gpu);
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
    if (sets_mark(change))
        core_put_change(core, kind, key, change);
    else
        store_batch_remove(core_batch(core)->changes, kind, key);
}

/* --- policies of single GPUs --- */

bool core_keep_policy(struct core *core, const struct cluster_change *change)
{
    struct core_gpu *gpu = core_take_gpu(core_add_node(core, change->node), change->uuid);
    gpu->policy = external_policy_find(change->text);
    return gpu->policy != EXTERNAL_POLICIES;
}

/* --- faults: why mgpu has drained a GPU --- */

void core_keep_fault(struct core *core, const struct cluster_change *change)
{
    put(&core_take_gpu(core_add_node(core, change->node), change->uuid)->fault, change);
}

bool core_end_fault(struct core *core, const struct core_node *node, struct core_gpu *gpu)
{
    if (gpu->fault == NULL)
        return false;
    put(&gpu->fault, NULL);
    _cleanup_free_ char *key = xasprintf("%s/%s", node->name, gpu->uuid);
    store_batch_remove(core_batch(core)->changes, CORE_KEPT_FAULT, key);
    return true;
}
