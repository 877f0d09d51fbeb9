/* SPDX-License-Identifier: MIT */
#include "agent/launch/share.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "base/strings.h"
#include "wire/message.h"

static bool is_shared(const struct launch_spec *spec)
{
    const struct gpu_grant *grants = spec->gpus.items;
    for (size_t i = 0; i < spec->gpus.count; i++)
        if (grants[i].slot != 0)
            return true;
    return false;
}

static const struct gpu_state *find_gpu(const struct record_list *gpus, const struct gpu_grant *grant)
{
    const struct gpu_state *states = gpus != NULL ? gpus->items : NULL;
    for (size_t i = 0; gpus != NULL && i < gpus->count; i++)
        if (text_equal(states[i].uuid, grant->uuid))
            return &states[i];
    return NULL;
}

uint64_t share_gpu_bytes(const struct record_list *gpus, const struct gpu_grant *grant)
{
    const struct gpu_state *gpu = find_gpu(gpus, grant);
    return gpu != NULL ? gpu->memory_bytes : 0;
}

/* A feature of the node may be unavailable for these GPUs. Every kind relies on the watch of the memory. */
static void judge_region(const char *regions, const struct gpu_state *gpu, struct share_ways *ways)
{
    _cleanup_free_ char *region = gpu != NULL ? share_region(regions, gpu->pci) : NULL;
    if (region == NULL)
        share_ways_refuse(ways, SHARE_DMEM, "the driver of the GPU does not charge its memory to cgroups");
}

static void judge_gpus(
    const struct record_list *gpus, const struct launch_spec *spec, struct share_ways *ways)
{
    const struct gpu_grant *grants = spec->gpus.items;
    for (size_t i = 0; i < spec->gpus.count; i++) {
        const struct gpu_state *gpu = find_gpu(gpus, &grants[i]);
        if (gpu == NULL || (gpu->valid & GPU_PROCESSES) == 0)
            share_ways_refuse(ways, SHARE_TIME, "the driver does not report the memory of processes");
        if (gpu == NULL || !gpu_vendor_of(gpu->vendor)->can_share_by_mps)
            share_ways_refuse(ways, SHARE_MPS, "it needs GPUs of NVIDIA");
        if (ways->is_available[SHARE_DMEM])
            judge_region(ways->regions, gpu, ways);
    }
    if (spec->gpus.count > 1)
        share_ways_refuse(ways, SHARE_MPS, "it is used for jobs with one GPU");
}

static void set_dmem(const char *regions, const struct record_list *gpus, struct launch_spec *spec)
{
    const struct gpu_grant *grants = spec->gpus.items;
    for (size_t i = 0; i < spec->gpus.count; i++) {
        const struct gpu_state *gpu = find_gpu(gpus, &grants[i]);
        _cleanup_free_ char *region = share_region(regions, gpu->pci);
        strings_take(
            &spec->dmem, xasprintf("%s %" PRIu64, region, share_bytes(&grants[i], gpu->memory_bytes)));
    }
}

int share_choose(const struct share_ways *ways, const struct record_list *gpus, const struct job_spec *job,
    struct launch_spec *spec, struct error *err)
{
    enum share_kind wanted = share_kind_from_name(job->ask.share), kind = wanted;
    if (wanted == SHARE_NONE || wanted == SHARE_KINDS || !is_shared(spec))
        return 0;
    struct share_ways here = *ways;
    judge_gpus(gpus, spec, &here);
    if (job->image != NULL)
        share_ways_refuse(&here, SHARE_MPS, "the job runs in a container");
    if (wanted == SHARE_AUTO)
        kind = share_ways_strongest(&here);
    if (kind == SHARE_NONE)
        return error_set(err, -ENOTSUP, "its share of the GPU cannot be enforced on this node: %s",
            here.why_not[SHARE_TIME]);
    if (!here.is_available[kind]) {
        (void)error_set(err, -ENOTSUP, "its share of the GPU cannot be enforced by %s: %s",
            share_kind_name(kind), here.why_not[kind]);
        return error_hint(err, "--share auto uses the strongest kind that works on the node");
    }
    _cleanup_free_ char *text = wanted == SHARE_AUTO ? share_ways_text(&here, kind) : xstrdup("requested");
    spec->share = xstrdup(share_kind_name(kind));
    if (kind == SHARE_DMEM)
        set_dmem(here.regions, gpus, spec);
    spec->share_why = text != NULL ? take_ptr(text) : xstrdup("the strongest kind");
    return 0;
}
