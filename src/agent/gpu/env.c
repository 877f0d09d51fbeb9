/* SPDX-License-Identifier: MIT */
/*
 * The variables that a vendor's libraries read are in its row (base/gpu_vendor.h); this file contains how
 * each kind is written.
 *
 * NVIDIA: CUDA numbers the GPUs it finds in PCI order. While all of them are present, these numbers are
 * mgpu's indexes, and programs that expect numbers get them. If a GPU is lost, or a new one was inserted
 * between others, UUIDs are used instead, which are always correct. They are also used on nodes with MIG
 * instances, which CUDA does not number. A process can use only one instance, the first of the list.
 *
 * AMD: ROCR_VISIBLE_DEVICES selects by UUID (or, for GPUs without one, by number in the driver's order among
 * those the job can open), and HIP numbers the selected ones from 0.
 */
#include "agent/gpu/env.h"

#include <string.h>

#include "base/buffer.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "job/event.h"
#include "wire/message.h"

#define UUID_OF_ROCM "GPU-"

/* The GPUs of the node. */
struct gpus {
    const struct record_list *list; // struct gpu_state; NULL: unknown
    bool is_guarded, is_numbered;
};

static const struct gpu_state *find(const struct record_list *gpus, const char *uuid)
{
    const struct gpu_state *states = gpus != NULL ? gpus->items : NULL;
    for (size_t i = 0; gpus != NULL && i < gpus->count; i++)
        if (text_equal(states[i].uuid, uuid))
            return &states[i];
    return NULL;
}

/* True if CUDA's numbers are mgpu's indexes. */
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

static void add_number(
    const struct gpus *gpus, const struct record_list *grants, size_t i, struct buffer *text)
{
    const struct gpu_grant *grant = (const struct gpu_grant *)grants->items + i;
    if (gpus->is_numbered || grant->uuid == NULL)
        buffer_printf(text, "%u", grant->index);
    else
        buffer_append_text(text, grant->uuid);
}

static bool is_granted(const struct record_list *grants, const struct gpu_state *gpu)
{
    const struct gpu_grant *items = grants->items;
    for (size_t i = 0; i < grants->count; i++)
        if (text_equal(items[i].uuid, gpu->uuid))
            return true;
    return false;
}

/* The driver finds GPUs in the order in which it creates their nodes, and ROCm finds only those it can open:
 * if the job `is_guarded`, its own. */
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

static void add_uuid(const struct gpus *gpus, const struct record_list *grants, size_t i, struct buffer *text)
{
    const char *uuid = ((const struct gpu_grant *)grants->items)[i].uuid;
    const struct gpu_state *gpu = find(gpus->list, uuid);
    if (gpu == NULL || strncmp(gpu->uuid, UUID_OF_ROCM, strlen(UUID_OF_ROCM)) == 0)
        buffer_append_text(text, uuid != NULL ? uuid : "");
    else
        buffer_printf(text, "%u", count_before(gpus->list, grants, gpus->is_guarded, gpu));
}

static void add_place(
    const struct gpus *gpus, const struct record_list *grants, size_t i, struct buffer *text)
{
    buffer_printf(text, "%zu", i);
}

/* Adds the text for the GPU at position `i` of the grants. */
typedef void add_fn(const struct gpus *gpus, const struct record_list *grants, size_t i, struct buffer *text);

static add_fn *const kinds[] = {
    [GPU_VARIABLE_NUMBERS] = add_number,
    [GPU_VARIABLE_UUIDS] = add_uuid,
    [GPU_VARIABLE_PLACES] = add_place,
};

static void set_list(const struct gpus *gpus, const struct record_list *grants,
    const struct gpu_variable *variable, struct strings *env)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    for (size_t i = 0; i < grants->count; i++) {
        buffer_append_text(&text, i > 0 ? "," : "");
        kinds[variable->kind](gpus, grants, i, &text);
    }
    strings_set_env(env, variable->name, buffer_text(&text));
}

void gpu_env_set(
    const struct record_list *list, const struct record_list *grants, bool is_guarded, struct strings *env)
{
    const struct gpu_state *first = list != NULL && list->count > 0 ? list->items : NULL;
    const struct gpu_vendor *vendor = gpu_vendor_of(first != NULL ? first->vendor : 0);
    const struct gpus gpus = {
        .list = list, .is_guarded = is_guarded, .is_numbered = vendor->is_made_up || is_counted_alike(list)
    };
    vendor = gpu_vendor_seen(vendor->number);
    for (const struct gpu_variable *variable = vendor->variables; variable->name != NULL; variable++)
        if (variable->kind == GPU_VARIABLE_FIXED)
            strings_set_env(env, variable->name, variable->text);
        else
            set_list(&gpus, grants, variable, env);
}
