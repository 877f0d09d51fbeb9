/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA: CUDA numbers the GPUs it finds in PCI order. While all of them are present, these numbers are
 * mgpu's indexes, and programs that expect numbers get them; if one is lost, or a new one was inserted
 * between others, UUIDs are used instead, which are always correct. So they are on nodes with MIG instances,
 * which CUDA does not number; a process can use only one instance, the first of the list.
 *
 * AMD: ROCR_VISIBLE_DEVICES selects by UUID (or, for GPUs without one, by number in the driver's order among
 * those the job can open), and HIP numbers the selected ones from 0.
 */
#include "agent/gpu/env.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "job/event.h"
#include "wire/message.h"

#define UUID_OF_ROCM "GPU-"

static const struct gpu_state *find(const struct record_list *gpus, const char *uuid)
{
    const struct gpu_state *states = gpus != NULL ? gpus->items : NULL;
    for (size_t i = 0; gpus != NULL && i < gpus->count; i++)
        if (text_equal(states[i].uuid, uuid))
            return &states[i];
    return NULL;
}

static bool has_vendor(const struct record_list *gpus, enum gpu_vendor vendor)
{
    const struct gpu_state *states = gpus != NULL ? gpus->items : NULL;
    for (size_t i = 0; gpus != NULL && i < gpus->count; i++)
        if (states[i].vendor == (uint32_t)vendor)
            return true;
    return false;
}

/* CUDA's numbers are ours. */
static bool is_counted_alike(const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++)
        if (states[i].is_lost != 0 || states[i].parent != NULL ||
            (i > 0 && states[i].pci != NULL && states[i - 1].pci != NULL &&
                strcmp(states[i].pci, states[i - 1].pci) < 0))
            return false;
    return true;
}

static void set_cuda(const struct record_list *gpus, const struct record_list *grants, struct strings *env)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    const struct gpu_grant *items = grants->items;
    bool is_numbered = !has_vendor(gpus, GPU_VENDOR_NVIDIA) || is_counted_alike(gpus);
    for (size_t i = 0; i < grants->count; i++) {
        const char *comma = i > 0 ? "," : "";
        if (is_numbered || items[i].uuid == NULL)
            buffer_printf(&text, "%s%u", comma, items[i].index);
        else
            buffer_printf(&text, "%s%s", comma, items[i].uuid);
    }
    strings_set_env(env, "CUDA_VISIBLE_DEVICES", buffer_text(&text));
    strings_set_env(env, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
}

static bool is_granted(const struct record_list *grants, const struct gpu_state *gpu)
{
    const struct gpu_grant *items = grants->items;
    for (size_t i = 0; i < grants->count; i++)
        if (text_equal(items[i].uuid, gpu->uuid))
            return true;
    return false;
}

/* The driver finds GPUs in the order in which it creates their nodes, and ROCm only those it can open: the
 * job's own if it `is_guarded`. */
static unsigned int count_before(const struct record_list *gpus, const struct record_list *grants,
    bool is_guarded, const struct gpu_state *gpu)
{
    const struct gpu_state *states = gpus->items;
    unsigned int before = 0;
    for (size_t i = 0; i < gpus->count; i++)
        before += states[i].is_lost == 0 && states[i].render_minor < gpu->render_minor &&
                  (!is_guarded || is_granted(grants, &states[i]));
    return before;
}

static void set_rocm(
    const struct record_list *gpus, const struct record_list *grants, bool is_guarded, struct strings *env)
{
    _cleanup_buffer_ struct buffer rocr = { 0 }, hip = { 0 };
    const struct gpu_grant *items = grants->items;
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_state *gpu = find(gpus, items[i].uuid);
        const char *comma = i > 0 ? "," : "";
        if (gpu == NULL || strncmp(gpu->uuid, UUID_OF_ROCM, strlen(UUID_OF_ROCM)) == 0)
            buffer_printf(&rocr, "%s%s", comma, items[i].uuid != NULL ? items[i].uuid : "");
        else
            buffer_printf(&rocr, "%s%u", comma, count_before(gpus, grants, is_guarded, gpu));
        buffer_printf(&hip, "%s%zu", comma, i);
    }
    strings_set_env(env, "ROCR_VISIBLE_DEVICES", buffer_text(&rocr));
    strings_set_env(env, "HIP_VISIBLE_DEVICES", buffer_text(&hip));
}

void gpu_env_set(
    const struct record_list *gpus, const struct record_list *grants, bool is_guarded, struct strings *env)
{
    if (has_vendor(gpus, GPU_VENDOR_AMD))
        set_rocm(gpus, grants, is_guarded, env);
    else
        set_cuda(gpus, grants, env);
}
