/* SPDX-License-Identifier: MIT */
/*
 * GPUs that mgpu itself takes out of use. Each sample is evaluated by job/gpu_health.h; a fault is an event,
 * is stored across restarts like a pause, and closes its GPU until it ends by itself or someone resumes the
 * GPU.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/marks.h"
#include "controller/core/node_view.h"
#include "controller/core/state.h"

/* The recovery action required by the driver, as the end of a sentence. */
static const char *recovery_words(uint32_t recovery)
{
    static const char *const words[] = {
        [GPU_RECOVERY_NONE] = "requested a reset",
        [GPU_RECOVERY_RESET] = "requests a reset",
        [GPU_RECOVERY_REBOOT] = "requests a reboot of the node",
        [GPU_RECOVERY_DRAIN_P2P] = "requests an end of all traffic between GPUs, then a reset",
        [GPU_RECOVERY_DRAIN_AND_RESET] = "requests an end of all programs there, then a reset",
    };
    return recovery < sizeof(words) / sizeof(words[0]) ? words[recovery] : words[GPU_RECOVERY_RESET];
}

/* The fault as text, for users and administrators. The caller frees it. */
static char *describe(const struct core *core, const struct gpu_trouble *trouble, const struct gpu_state *gpu)
{
    char span[32];
    const char *words = gpu->trouble != NULL ? gpu->trouble : "the driver no longer sees it";
    if (trouble->xid != 0)
        return xasprintf("Xid %" PRIu32 ": %s", trouble->xid, xid_words(trouble->xid));
    if (trouble->fault == GPU_FAULT_RESET)
        return xasprintf("the driver %s", recovery_words(gpu->recovery));
    if (trouble->fault == GPU_FAULT_LOST)
        return xasprintf("vanished: %s", words);
    format_duration(core->options.health.unclean_ms, span, sizeof(span));
    return xasprintf("not clean for %s: %s", span, words);
}

static void drain(struct core *core, const struct core_node *node, const struct gpu_state *gpu,
    const struct gpu_trouble *trouble)
{
    _cleanup_free_ char *key = xasprintf("%s/%s", node->name, gpu->uuid);
    _cleanup_(cluster_change_clear) struct cluster_change change = {
        .kind = CHANGE_GPU_DRAIN,
        .uid = core->options.admin_uid,
        .node = xstrdup(node->name),
        .uuid = xstrdup(gpu->uuid),
        .from_ms = core->now_ms,
        .text = describe(core, trouble, gpu),
        .fault = trouble->fault,
        .xid = trouble->xid,
        .energy_mj = trouble->energy_mj,
    };
    core_keep_fault(core, &change);
    core_change_cluster(core, &change);
    core_put_change(core, CORE_KEPT_FAULT, key, &change);
}

static void put_back(struct core *core, const struct core_node *node, struct core_gpu *gpu)
{
    _cleanup_(cluster_change_clear) struct cluster_change change = {
        .kind = CHANGE_GPU_RETURN,
        .uid = core->options.admin_uid,
        .node = xstrdup(node->name),
        .uuid = xstrdup(gpu->uuid),
        .text = xstrdup("it has recovered"),
    };
    (void)core_end_fault(core, node, gpu);
    core_change_cluster(core, &change);
}

static struct gpu_trouble present_trouble(const struct cluster_change *fault)
{
    if (fault == NULL)
        return (struct gpu_trouble){ 0 };
    return (struct gpu_trouble){ (enum gpu_fault)fault->fault, fault->xid, fault->energy_mj };
}

/* The time of the next check that is due even if no message of the node arrives. */
static int64_t check_gpu(struct core *core, const struct core_node *node, const struct cluster_node *ledger,
    struct core_gpu *known)
{
    const struct gpu_state *gpu = known->state;
    const struct cluster_gpu *books = core_gpu_books(ledger, known);
    struct gpu_health *health = &known->watch.health;
    struct gpu_trouble present = present_trouble(known->fault), fresh = { 0 };
    const struct gpu_observation observation = {
        .now_ms = core->now_ms,
        .xids = gpu->xids.items,
        .n_xids = gpu->xids.count,
        .is_lost = gpu->is_lost != 0,
        .is_unclean = gpu->is_unclean != 0,
        .is_held = books != NULL && !cluster_gpu_is_empty(books),
        .energy_mj = (gpu->valid & GPU_ENERGY) != 0 ? gpu->energy_mj : 0,
        .is_recovery_known = (gpu->valid & GPU_RECOVERY) != 0,
        .is_recovery_wanted = (gpu->valid & GPU_RECOVERY) != 0 && gpu->recovery != GPU_RECOVERY_NONE,
    };
    switch (gpu_health_evaluate(health, &core->options.health, &present, &observation, &fresh)) {
    case HEALTH_DRAIN: drain(core, node, gpu, &fresh); return core->now_ms;
    case HEALTH_RETURN: put_back(core, node, known); return core->now_ms;
    default: return gpu_health_next_ms(health, &core->options.health, present.fault);
    }
}

/* Arms the earliest check of all nodes, or an earlier time if a node's has moved since; a check that is too
 * early finds nothing due. */
static void check_by(struct core *core, int64_t due_ms)
{
    if (due_ms < core->health_due_ms)
        core->health_due_ms = due_ms;
}

static void on_sample(struct core *core, struct core_node *node)
{
    const struct cluster_node *ledger = cluster_find(sched_cluster(core->sched), node->name);
    const struct gpu_state *gpus = node->hello.gpus.items;
    node->health_due_ms = TIME_NEVER;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        struct core_gpu *gpu = core_gpu_at(node, i);
        bool is_judged = gpu != NULL && gpus[i].is_gone == 0 && !core_is_released(node, gpu);
        int64_t due_ms = is_judged ? check_gpu(core, node, ledger, gpu) : TIME_NEVER;
        node->health_due_ms = due_ms < node->health_due_ms ? due_ms : node->health_due_ms;
    }
    check_by(core, node->health_due_ms);
}

static int64_t next_ms(const struct core *core)
{
    return core_boot_at(core, core->health_due_ms);
}

static void run(struct core *core)
{
    if (core->health_due_ms > core->now_ms)
        return;
    core->health_due_ms = TIME_NEVER;
    for (size_t i = 0; i < core->n_nodes; i++) {
        struct core_node *node = &core->nodes[i];
        if (!node->is_up)
            continue;
        if (node->health_due_ms > core->now_ms) {
            check_by(core, node->health_due_ms);
            continue;
        }
        on_sample(core, node);
        core_node_changed(core, node);
    }
}

static void init(struct core *core)
{
    core->health_due_ms = TIME_NEVER;
}

static void on_close(const struct core *core, const struct core_node *node, const struct core_gpu *gpu,
    struct cluster_device *device)
{
    if (core_gpu_fault(node, gpu) != NULL)
        device->closed |= DEVICE_UNHEALTHY;
}

const struct core_concern core_concern_health = {
    .name = "health",
    .init = init,
    .sample = on_sample,
    .close = on_close,
    .next_ms = next_ms,
    .run = run,
};
