/* SPDX-License-Identifier: MIT */
/* What NVML measures on one GPU: memory, load, heat, power, clocks and memory errors. */
#pragma once

#include "agent/gpu/nvml_api.h"
#include "wire/message.h"

/* Sets is_lost, trouble and the memory in use, and takes away the bit of the processes, which are read anew.
 * `failures` is that of the samples of this GPU. */
void nvml_look_at_memory(
    const struct nvml_api *api, nvml_device device, unsigned int *failures, struct gpu_state *gpu);

/* Sets is_lost and trouble, the measured numbers and their bits in `valid`, and what its modes allow. A value
 * that the driver does not give, or that cannot be true, has no bit. `failures` counts samples in a row that
 * ended in an error, 0 at first: after some of them the GPU is lost. */
void nvml_read_values(
    const struct nvml_api *api, nvml_device device, unsigned int *failures, struct gpu_state *gpu);
