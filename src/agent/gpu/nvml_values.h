/* SPDX-License-Identifier: MIT */
/* Values measured by NVML: memory, utilization, temperature, power, clocks and memory errors. */
#pragma once

#include "agent/gpu/nvml_api.h"
#include "wire/message.h"

/* Sets is_lost, trouble and the memory in use, and clears the bit of the processes, which are read
 * separately. `failures`: as for nvml_read_values() of this GPU. */
void nvml_read_memory(
    const struct nvml_api *api, nvml_device device, unsigned int *failures, struct gpu_state *gpu);

/* The same for a sample of a MIG instance, of which the driver measures nothing else. */
void nvml_read_instance_values(
    const struct nvml_api *api, nvml_device device, unsigned int *failures, struct gpu_state *gpu);

/* Sets is_lost and trouble, the measured values and their bits in `valid`, and the restrictions of its modes.
 * A value that the driver does not provide, or that is implausible, has no bit. `failures` counts consecutive
 * failed samples, initially 0: after several the GPU is lost. */
void nvml_read_values(
    const struct nvml_api *api, nvml_device device, unsigned int *failures, struct gpu_state *gpu);
