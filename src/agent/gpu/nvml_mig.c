/* SPDX-License-Identifier: MIT */
/*
 * NVML's name of an instance ends with its profile ("NVIDIA H200 MIG 1g.18gb"). If it does not, the profile
 * is computed as NVIDIA's tools do: the memory is rounded up to eighths of the GPU's.
 */
#include "agent/gpu/nvml_mig.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "job/gpu_instance.h"

#define PROFILE_MARK  " MIG "
#define PROFILE_CHARS "0123456789abcdefghijklmnopqrstuvwxyz.+-_"
#define PROFILE_MAX   32U
#define SLICES_MAX    64U // slices of a GPU, and its memory in GiB: higher values of the driver are rejected
#define MEMORY_PARTS  8U
#define GIB           (1ULL << 30)

static bool read_instance(
    const struct nvml_api *api, nvml_device device, unsigned int i, struct nvml_instance *ret, int *ret_code)
{
    *ret = (struct nvml_instance){ 0 };
    *ret_code = api->mig_handle(device, i, &ret->device);
    if (*ret_code != NVML_SUCCESS)
        return false;
    *ret_code = api->gpu_instance(ret->device, &ret->gpu_instance);
    if (*ret_code == NVML_SUCCESS)
        *ret_code = api->compute_instance(ret->device, &ret->compute_instance);
    if (*ret_code == NVML_SUCCESS)
        *ret_code = api->uuid(ret->device, ret->uuid, sizeof(ret->uuid));
    ret->uuid[sizeof(ret->uuid) - 1] = '\0';
    return *ret_code == NVML_SUCCESS;
}

void nvml_mig_read(const struct nvml_api *api, nvml_device device, struct nvml_layout *ret)
{
    unsigned int mode = 0, pending = 0, most = 0;
    int code = api->mig_mode != NULL ? api->mig_mode(device, &mode, &pending) : NVML_NOT_SUPPORTED;
    *ret = (struct nvml_layout){ 0 };
    ret->is_on = code == NVML_SUCCESS && mode == NVML_MIG_ENABLED;
    ret->is_known = !ret->is_on && (code == NVML_SUCCESS || code == NVML_NOT_SUPPORTED);
    if (!ret->is_on || api->mig_count == NULL || api->mig_handle == NULL || api->gpu_instance == NULL ||
        api->compute_instance == NULL || api->uuid == NULL || api->mig_count(device, &most) != NVML_SUCCESS)
        return;
    ret->is_known = true;
    for (unsigned int i = 0; i < most && i < NVML_INSTANCES_MAX && ret->is_known; i++) {
        if (read_instance(api, device, i, &ret->instances[ret->count], &code))
            ret->count++;
        else
            ret->is_known = code == NVML_NOT_FOUND; // a number that no instance has
    }
    if (!ret->is_known)
        ret->count = 0;
}

bool nvml_mig_is_same(const struct nvml_layout *a, const struct nvml_layout *b)
{
    if (a->is_on != b->is_on || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->instances[i].gpu_instance != b->instances[i].gpu_instance ||
            a->instances[i].compute_instance != b->instances[i].compute_instance ||
            strcmp(a->instances[i].uuid, b->instances[i].uuid) != 0)
            return false;
    return true;
}

char *nvml_mig_refusal(const struct nvml_layout *layout)
{
    if (layout->is_known && !layout->is_on)
        return NULL;
    if (!layout->is_known)
        return xstrdup("MIG mode is on, and the driver does not list its instances");
    if (layout->count == 0)
        return xstrdup("MIG mode is on, and it has no instances");
    return xasprintf("MIG mode is on: its %zu instance%s offered instead", layout->count,
        layout->count == 1 ? " is" : "s are");
}

static char *compute_profile(
    const struct nvml_api *api, const struct nvml_instance *instance, unsigned long long total)
{
    struct nvml_attributes is = { 0 };
    if (api->attributes == NULL || api->attributes(instance->device, &is) != NVML_SUCCESS ||
        is.gpu_instance_slices == 0 || is.gpu_instance_slices > SLICES_MAX ||
        is.compute_instance_slices > SLICES_MAX || is.memory_mib > UINT32_MAX || total / GIB > UINT32_MAX)
        return xstrdup("unknown");
    unsigned long long bytes = is.memory_mib << 20, whole_gib = (total + GIB - 1) / GIB;
    unsigned long long parts = total == 0 ? 0 : (bytes * MEMORY_PARTS + total - 1) / total;
    unsigned long long gib = total == 0 ? bytes / GIB : (parts * whole_gib + MEMORY_PARTS / 2) / MEMORY_PARTS;
    if (is.compute_instance_slices != 0 && is.compute_instance_slices < is.gpu_instance_slices)
        return xasprintf("%uc.%ug.%llugb", is.compute_instance_slices, is.gpu_instance_slices, gib);
    return xasprintf("%ug.%llugb", is.gpu_instance_slices, gib);
}

char *nvml_mig_model(
    const struct nvml_api *api, const struct nvml_instance *instance, unsigned long long total)
{
    char name[NVML_TEXT_SIZE] = "";
    bool has_name = api->name != NULL && api->name(instance->device, name, sizeof(name)) == NVML_SUCCESS;
    name[sizeof(name) - 1] = '\0';
    const char *mark = has_name ? strstr(name, PROFILE_MARK) : NULL;
    const char *profile = mark != NULL ? mark + strlen(PROFILE_MARK) : "";
    size_t length = strlen(profile);
    if (length > 0 && length <= PROFILE_MAX && strspn(profile, PROFILE_CHARS) == length)
        return xasprintf(GPU_INSTANCE_MODEL "%s", profile);
    _cleanup_free_ char *computed = compute_profile(api, instance, total);
    return xasprintf(GPU_INSTANCE_MODEL "%s", computed);
}

bool nvml_mig_is_there(const struct nvml_api *api, const struct nvml_instance *instance)
{
    char uuid[NVML_TEXT_SIZE] = "";
    int code = api->uuid(instance->device, uuid, sizeof(uuid));
    uuid[sizeof(uuid) - 1] = '\0';
    if (code == NVML_SUCCESS)
        return strcmp(uuid, instance->uuid) == 0;
    return code != NVML_INVALID_ARGUMENT && code != NVML_NOT_FOUND;
}
