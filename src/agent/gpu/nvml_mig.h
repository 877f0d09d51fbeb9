/* SPDX-License-Identifier: MIT */
/*
 * MIG: a GPU that its administrator has divided into instances. NVML gives each compute instance a handle,
 * which becomes invalid, or that of another one, when the layout changes. mgpu never changes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/gpu/nvml_api.h"

#define NVML_INSTANCES_MAX 16U // of one GPU; the maximum is 7

struct nvml_instance {
    nvml_device device;
    unsigned int gpu_instance, compute_instance;
    char uuid[NVML_TEXT_SIZE];
};

struct nvml_layout {
    bool is_on;    // MIG mode is
    bool is_known; // the driver has reported the mode and listed the instances
    size_t count;
    struct nvml_instance instances[NVML_INSTANCES_MAX];
};

/* Reads the layout of a GPU. */
void nvml_mig_read(const struct nvml_api *api, nvml_device device, struct nvml_layout *ret);

/* True if both have the same instances. */
bool nvml_mig_is_same(const struct nvml_layout *a, const struct nvml_layout *b);

/* Why no job can have the GPU as a whole, if MIG mode is on or was; the caller frees it. NULL: it is off. */
char *nvml_mig_refusal(const struct nvml_layout *layout);

/* The model of an instance, "MIG 1g.18gb"; `total` is the memory of its GPU. The caller frees it. */
char *nvml_mig_model(
    const struct nvml_api *api, const struct nvml_instance *instance, unsigned long long total);

/* True while the handle is still that of the instance. */
bool nvml_mig_is_there(const struct nvml_api *api, const struct nvml_instance *instance);
