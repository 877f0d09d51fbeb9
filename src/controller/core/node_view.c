/* SPDX-License-Identifier: MIT */
/*
 * A node's description for the scheduler: its reported hardware, except for what is closed. A change is an
 * event and a row of the store, so requests are also accepted for nodes that are down.
 */
#include "controller/core/node_view.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/record_equal.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/marks.h"
#include "controller/core/park_proof.h"
#include "controller/core/state.h"
#include "sched/from_record.h"

/* Parked jobs, and those that were parked, keep their host memory outside the ledger. Jobs that started early
 * and were not parked since do so too, with their CPUs. */
static void subtract_kept(const struct core *core, const char *node, struct cluster_change *ret)
{
    uint64_t parked = 0;
    size_t count = 0;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, node, &count);
    for (size_t i = 0; i < count; i++) {
        parked += job_park(entries[i]->job)->memory;
        ret->kept_cpu_milli += job_park(entries[i]->job)->kept_cpu_milli;
        ret->kept_memory += job_park(entries[i]->job)->kept_memory;
    }
    ret->memory = ret->memory > parked ? ret->memory - parked : 0;
}

/* Borrows its texts, which stay valid until mgpud ends. */
static void describe_node(const struct core *core, const struct core_node *node, struct cluster_change *ret)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    struct cluster_device *devices = xcalloc(node->hello.gpus.count + 1, sizeof(*devices));
    size_t count = 0;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        const struct core_gpu *gpu = core_gpu_at(node, i);
        if (gpu == NULL || gpus[i].is_gone != 0)
            continue;
        devices[count] = (struct cluster_device){
            .index = gpus[i].index,
            .uuid = gpu->uuid,
            .model = gpu->model,
            .memory_bytes = gpus[i].memory_bytes,
            .numa = gpus[i].numa,
            .pcie_switch = gpus[i].pcie_switch,
            .links = gpus[i].links,
            .is_lost = gpus[i].is_lost != 0,
        };
        core_close_device(core, node, gpu, &devices[count++]);
    }
    *ret = (struct cluster_change){
        .kind = CHANGE_NODE_UP,
        .node = node->name,
        .cpu_milli = node->hello.cpus * 1000,
        .memory = node->hello.memory_bytes,
        .devices = { .items = devices, .count = count },
        .shares = node->hello.shares,
        .parks = node->hello.parks_ranks != 0 && core_parking_is_proven(core, node->name),
        .returns_home = !core_return_elsewhere_is_proven(core, node->name),
    };
    subtract_kept(core, node->name, ret);
}

static void apply_node(struct core *core, const struct core_node *node, const struct cluster_change *change)
{
    struct cluster *cluster = sched_cluster(core->sched);
    struct cluster_node *ledger = cluster_take_node(cluster, change);
    for (size_t i = 0; i < node->n_reported; i++) {
        struct core_gpu *gpu = core_gpu_at(node, i);
        struct cluster_gpu *books = gpu != NULL ? core_gpu_books(ledger, gpu) : NULL;
        if (books != NULL)
            books->is_paused = core_gpu_mark(node, gpu) != NULL;
    }
    ledger->is_drained = node->mark != NULL;
    cluster_touch(cluster, ledger);
    core_keep_size(core, change);
}

void core_keep_size(struct core *core, const struct cluster_change *change)
{
    (void)cluster_take_node(sched_known(core->sched), change);
}

void core_node_changed(struct core *core, struct core_node *node)
{
    struct cluster_change change;
    if (node->n_orphaned > 0 || node->is_behind_gap)
        return; // it is updated when these have ended and the node has accepted the epoch
    describe_node(core, node, &change);
    if (node->described != NULL && record_equal(&cluster_change_record, &change, node->described)) {
        free(change.devices.items);
        return;
    }
    bool has_come = node->described == NULL;
    core_forget_description(node);
    node->described = xcalloc(1, sizeof(*node->described));
    *node->described = change;
    change.has_come = has_come;
    apply_node(core, node, &change);
    core_change_cluster(core, &change);
    core_put_change(core, CORE_NODE_SIZE, change.node, &change);
}

void core_forget_description(struct core_node *node)
{
    if (node->described != NULL)
        free(node->described->devices.items);
    free(take_ptr(node->described));
}

void core_node_down(struct core *core, struct core_node *node)
{
    struct cluster *cluster = sched_cluster(core->sched);
    struct cluster_node *ledger = cluster_find(cluster, node->name);
    struct cluster_change change = { .kind = CHANGE_NODE_DOWN, .node = node->name };
    core_forget_description(node);
    if (ledger != NULL) {
        ledger->is_up = false;
        cluster_touch(cluster, ledger);
    }
    core_change_cluster(core, &change);
}

void core_node_removed(struct core *core, const char *name)
{
    cluster_remove_node(sched_cluster(core->sched), name);
    cluster_remove_node(sched_known(core->sched), name);
    store_batch_remove(core_batch(core)->changes, CORE_NODE_SIZE, name);
}

void core_sampled(struct core *core, struct core_node *node)
{
    core_hook_sample(core, node);
    core_node_changed(core, node);
}
