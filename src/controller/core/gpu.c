/* SPDX-License-Identifier: MIT */
/* The GPUs of a node. */
#include "controller/core/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"

#define NOWHERE UINT32_MAX // no position in node->gpus, no place in the cluster

struct core_gpu *core_find_gpu(const struct core_node *node, const char *uuid)
{
    for (size_t i = 0; node != NULL && i < node->n_gpus; i++)
        if (text_equal(node->gpus[i].uuid, uuid))
            return &node->gpus[i];
    return NULL;
}

struct core_gpu *core_take_gpu(struct core_node *node, const char *uuid)
{
    struct core_gpu *known = core_find_gpu(node, uuid);
    if (known != NULL)
        return known;
    node->gpus = xreallocarray(node->gpus, node->n_gpus + 1, sizeof(*node->gpus));
    known = &node->gpus[node->n_gpus++];
    *known = (struct core_gpu){ .uuid = xstrdup(uuid), .place = NOWHERE, .policy = EXTERNAL_POLICIES };
    return known;
}

static void clear_change(struct cluster_change *change)
{
    if (change != NULL)
        cluster_change_clear(change);
    free(change);
}

void core_clear_gpus(struct core_node *node)
{
    for (size_t i = 0; i < node->n_gpus; i++) {
        clear_change(node->gpus[i].mark);
        clear_change(node->gpus[i].fault);
        free(node->gpus[i].uuid);
    }
    clear_change(node->mark);
    free(node->gpus);
    free(node->reported);
}

/* --- as their node reports them --- */

/* The model's name, valid until mgpud ends; NULL for none. */
static char *keep_model(struct core_node *node, const char *model)
{
    for (size_t i = 0; model != NULL && i < node->models.count; i++)
        if (strcmp(node->models.items[i], model) == 0)
            return node->models.items[i];
    if (model != NULL)
        strings_add(&node->models, model);
    return model != NULL ? node->models.items[node->models.count - 1] : NULL;
}

/* Reports almost always have the same GPUs in the same order, so one comparison finds each. */
static uint32_t position_of(struct core_node *node, const struct gpu_state *state, size_t i)
{
    uint32_t last = i < node->n_reported ? node->reported[i] : NOWHERE;
    if (state->uuid == NULL)
        return NOWHERE;
    if (last != NOWHERE && text_equal(node->gpus[last].uuid, state->uuid))
        return last;
    struct core_gpu *gpu = core_take_gpu(node, state->uuid);
    gpu->model = keep_model(node, state->model);
    return (uint32_t)(gpu - node->gpus);
}

void core_link_reports(struct core_node *node, bool is_new)
{
    if (is_new)
        node->n_reported = 0;
    const struct gpu_state *states = node->hello.gpus.items;
    size_t count = node->hello.gpus.count;
    uint32_t *reported = xcalloc(count + 1, sizeof(*reported));
    for (size_t i = 0; i < count; i++)
        reported[i] = position_of(node, &states[i], i);
    for (size_t i = 0; i < node->n_gpus; i++)
        node->gpus[i].state = NULL;
    for (size_t i = count; i-- > 0;)
        if (reported[i] != NOWHERE)
            node->gpus[reported[i]].state = &states[i];
    free(node->reported);
    node->reported = reported;
    node->n_reported = count;
}

struct core_gpu *core_gpu_at(const struct core_node *node, size_t position)
{
    uint32_t at = position < node->n_reported ? node->reported[position] : NOWHERE;
    return at != NOWHERE ? &node->gpus[at] : NULL;
}

struct cluster_gpu *core_gpu_books(const struct cluster_node *ledger, struct core_gpu *gpu)
{
    if (ledger == NULL)
        return NULL;
    if (gpu->place == NOWHERE) {
        const struct cluster_gpu *found = cluster_find_gpu(ledger, gpu->uuid);
        gpu->place = found != NULL ? (uint32_t)(found - ledger->gpus) : NOWHERE;
    }
    return gpu->place != NOWHERE ? &ledger->gpus[gpu->place] : NULL;
}

const struct core_gpu *core_gpu_of(
    const struct core *core, const struct alloc_gpu *place, const struct core_node **ret_node)
{
    const struct cluster_node *ledger = &sched_cluster(core->sched)->nodes[place->node];
    *ret_node = core_find_node(core, ledger->name);
    return place->gpu < ledger->n_gpus ? core_find_gpu(*ret_node, ledger->gpus[place->gpu].uuid) : NULL;
}

/* --- MIG instances --- */

/* The GPU that this MIG instance is part of; NULL: it is no instance. `gpu` may be NULL. */
static const struct core_gpu *parent_of(const struct core_node *node, const struct core_gpu *gpu)
{
    bool is_instance = gpu != NULL && gpu->state != NULL && gpu->state->parent != NULL;
    return is_instance ? core_find_gpu(node, gpu->state->parent) : NULL;
}

void core_each_instance(const struct core_node *node, const struct core_gpu *gpu,
    void (*visit)(void *arg, struct core_gpu *instance), void *arg)
{
    for (size_t i = 0; i < node->n_gpus; i++) {
        const struct gpu_state *state = node->gpus[i].state;
        if (state != NULL && state->parent != NULL && state->is_gone == 0 &&
            text_equal(state->parent, gpu->uuid))
            visit(arg, &node->gpus[i]);
    }
}

/* --- what keeps jobs away --- */

const struct cluster_change *core_gpu_mark(const struct core_node *node, const struct core_gpu *gpu)
{
    const struct core_gpu *parent = gpu != NULL && gpu->mark == NULL ? parent_of(node, gpu) : gpu;
    return parent != NULL ? parent->mark : NULL;
}

const struct cluster_change *core_gpu_fault(const struct core_node *node, const struct core_gpu *gpu)
{
    const struct core_gpu *parent = gpu != NULL && gpu->fault == NULL ? parent_of(node, gpu) : gpu;
    return parent != NULL ? parent->fault : NULL;
}

enum external_policy core_gpu_policy(const struct core *core, const struct core_gpu *gpu)
{
    bool is_own = gpu != NULL && gpu->policy != EXTERNAL_POLICIES;
    return is_own ? gpu->policy : core->options.external.policy;
}

bool core_gpu_is_used_externally(const struct core_gpu *gpu)
{
    return gpu != NULL && gpu->watch.is_used_externally;
}

/* --- those of a job --- */

static const struct gpu_state *find_granted(
    const struct core *core, const struct job *job, const struct gpu_grant *grant)
{
    const struct core_node *node = core_find_node(core, grant->node != NULL ? grant->node : job->node);
    const struct core_gpu *gpu = core_find_gpu(node, grant->uuid);
    return gpu != NULL ? gpu->state : NULL;
}

uint64_t core_memory_of_gpu(const struct core *core, const struct job *job)
{
    const struct gpu_state *gpu = job->grants.count > 0 ? find_granted(core, job, job->grants.items) : NULL;
    return gpu != NULL ? gpu->memory_bytes : 0;
}

const struct gpu_state *core_gone_instance(const struct core *core, const struct job *job)
{
    const struct gpu_grant *grants = job->grants.items;
    for (size_t i = 0; i < job->grants.count; i++) {
        const struct gpu_state *gpu = find_granted(core, job, &grants[i]);
        if (gpu != NULL && gpu->is_gone != 0)
            return gpu;
    }
    return NULL;
}
