/* SPDX-License-Identifier: MIT */
/*
 * Closes GPUs that are divided into MIG instances, and ends running jobs whose MIG instance no longer exists
 * because an administrator has changed the layout of its GPU: their data there is lost. Jobs that are
 * starting or parked at that time are ended with the first sample after that.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_jobs.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"

static bool has_gone(const struct core_node *node)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        if (gpus[i].is_gone != 0)
            return true;
    return false;
}

static void on_sample(struct core *core, struct core_node *node)
{
    size_t count = 0;
    if (!has_gone(node))
        return;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, node->name, &count);
    for (size_t i = 0; i < count; i++)
        if (entries[i]->job->state == JOB_RUNNING && core_gone_instance(core, entries[i]->job) != NULL)
            core_stop_job(core, entries[i], core->options.admin_uid, END_GPU_FAULT);
}

static void note_instance(void *arg, struct core_gpu *instance)
{
    struct cluster_device *device = arg;
    device->closed |= DEVICE_DIVIDED;
}

/* Requests for whole GPUs do not wait for it. */
static void on_close(const struct core *core, const struct core_node *node, const struct core_gpu *gpu,
    struct cluster_device *device)
{
    core_each_instance(node, gpu, note_instance, device);
}

const struct core_concern core_concern_instances = {
    .name = "instances",
    .sample = on_sample,
    .close = on_close,
};
