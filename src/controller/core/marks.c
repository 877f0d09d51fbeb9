/* SPDX-License-Identifier: MIT */
/*
 * What has been said of single GPUs and nodes, and outlives restarts of everything: marks of administrators
 * (paused, drained, fenced, released), policies for GPUs that others use, and faults for which mgpu has taken
 * a GPU out of use. Every change is an event of job 0, so that the log alone can build the same cluster.
 */
#include "controller/core/marks.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/state.h"

/* --- marks: what an administrator said --- */

static struct cluster_change *find_mark(const struct core *core, const char *node, const char *uuid)
{
    for (size_t i = 0; i < core->n_marks; i++)
        if (text_equal(core->marks[i].node, node) && text_equal(core->marks[i].uuid, uuid))
            return &core->marks[i];
    return NULL;
}

const struct cluster_change *core_mark(const struct core *core, const char *node, const char *uuid)
{
    return find_mark(core, node, uuid);
}

const struct cluster_change *core_gpu_mark(const struct core *core, const struct alloc_gpu *gpu, bool is_node)
{
    const struct cluster_node *node = &sched_cluster(core->sched)->nodes[gpu->node];
    return find_mark(core, node->name, is_node ? NULL : node->gpus[gpu->gpu].uuid);
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

/* The ledger as the marks say; what is not known yet is marked when it comes. */
static void apply_mark(struct core *core, const char *node, const char *uuid, bool is_set)
{
    struct cluster *cluster = sched_cluster(core->sched);
    struct cluster_node *where = cluster_find(cluster, node);
    if (where == NULL)
        return;
    struct cluster_gpu *gpu = uuid != NULL ? cluster_find_gpu(where, uuid) : NULL;
    if (uuid == NULL)
        where->is_drained = is_set;
    else if (gpu != NULL)
        gpu->is_paused = is_set;
    cluster_touch(cluster, where);
}

void core_set_mark(struct core *core, const struct cluster_change *change)
{
    struct cluster_change *mark = find_mark(core, change->node, change->uuid);
    bool is_set = change->kind == CHANGE_GPU_PAUSE || change->kind == CHANGE_NODE_DRAIN ||
                  change->kind == CHANGE_NODE_FENCE;
    if (mark != NULL) {
        cluster_change_clear(mark);
        *mark = core->marks[--core->n_marks];
    }
    if (is_set) {
        core->marks = xreallocarray(core->marks, core->n_marks + 1, sizeof(*core->marks));
        record_copy(&cluster_change_record, &core->marks[core->n_marks++], change);
    }
    apply_mark(core, change->node, change->uuid, is_set);
}

void core_clear_marks(struct core *core)
{
    for (size_t i = 0; i < core->n_marks; i++)
        cluster_change_clear(&core->marks[i]);
    free(core->marks);
    core->marks = NULL;
    core->n_marks = 0;
}

void core_put_change(
    struct core *core, const char *kind, const char *key, const struct cluster_change *change)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&cluster_change_record, change, &bytes);
    store_batch_put(core_batch(core)->changes, kind, key, &bytes);
}

void core_make_mark(struct core *core, const struct cluster_change *change)
{
    const char *kind = change->uuid != NULL ? "gpu" : "node";
    _cleanup_free_ char *key =
        change->uuid != NULL ? xasprintf("%s/%s", change->node, change->uuid) : xstrdup(change->node);
    core_set_mark(core, change);
    core_change_cluster(core, change);
    core_tell_mark(core, change);
    if (find_mark(core, change->node, change->uuid) != NULL)
        core_put_change(core, kind, key, change);
    else
        store_batch_remove(core_batch(core)->changes, kind, key);
}

/* --- policies of single GPUs --- */

static struct cluster_change *find_policy(const struct core *core, const char *node, const char *uuid)
{
    for (size_t i = 0; i < core->n_policies; i++)
        if (text_equal(core->policies[i].node, node) && text_equal(core->policies[i].uuid, uuid))
            return &core->policies[i];
    return NULL;
}

enum foreign_policy core_gpu_policy(
    const struct core *core, const char *node, const char *uuid, bool *ret_is_own)
{
    const struct cluster_change *own = find_policy(core, node, uuid);
    enum foreign_policy policy = own != NULL ? foreign_policy_find(own->text) : FOREIGN_POLICIES;
    if (ret_is_own != NULL)
        *ret_is_own = policy != FOREIGN_POLICIES;
    return policy != FOREIGN_POLICIES ? policy : core->options.outside.policy;
}

bool core_keep_policy(struct core *core, const struct cluster_change *change)
{
    struct cluster_change *own = find_policy(core, change->node, change->uuid);
    if (own != NULL) {
        cluster_change_clear(own);
        *own = core->policies[--core->n_policies];
    }
    if (foreign_policy_find(change->text) == FOREIGN_POLICIES)
        return false;
    core->policies = xreallocarray(core->policies, core->n_policies + 1, sizeof(*core->policies));
    record_copy(&cluster_change_record, &core->policies[core->n_policies++], change);
    return true;
}

void core_clear_policies(struct core *core)
{
    for (size_t i = 0; i < core->n_policies; i++)
        cluster_change_clear(&core->policies[i]);
    free(core->policies);
    core->policies = NULL;
    core->n_policies = 0;
}

/* --- faults: why mgpu has drained a GPU --- */

static struct cluster_change *find_fault(const struct core *core, const char *node, const char *uuid)
{
    for (size_t i = 0; i < core->n_faults; i++)
        if (text_equal(core->faults[i].node, node) && text_equal(core->faults[i].uuid, uuid))
            return &core->faults[i];
    return NULL;
}

const struct cluster_change *core_fault(const struct core *core, const char *node, const char *uuid)
{
    return find_fault(core, node, uuid);
}

const struct cluster_change *core_gpu_fault(const struct core *core, const struct alloc_gpu *gpu)
{
    const struct cluster_node *node = &sched_cluster(core->sched)->nodes[gpu->node];
    return find_fault(core, node->name, node->gpus[gpu->gpu].uuid);
}

void core_keep_fault(struct core *core, const struct cluster_change *change)
{
    struct cluster_change *known = find_fault(core, change->node, change->uuid);
    if (known == NULL) {
        core->faults = xreallocarray(core->faults, core->n_faults + 1, sizeof(*core->faults));
        known = &core->faults[core->n_faults++];
    } else {
        cluster_change_clear(known);
    }
    record_copy(&cluster_change_record, known, change);
}

void core_clear_faults(struct core *core)
{
    for (size_t i = 0; i < core->n_faults; i++)
        cluster_change_clear(&core->faults[i]);
    free(core->faults);
    core->faults = NULL;
    core->n_faults = 0;
}

bool core_end_fault(struct core *core, const char *node, const char *uuid)
{
    struct cluster_change *known = find_fault(core, node, uuid);
    if (known == NULL)
        return false;
    _cleanup_free_ char *key = xasprintf("%s/%s", node, uuid);
    cluster_change_clear(known);
    *known = core->faults[--core->n_faults];
    store_batch_remove(core_batch(core)->changes, CORE_KEPT_FAULT, key);
    return true;
}
