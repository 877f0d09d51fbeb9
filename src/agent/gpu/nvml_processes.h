/* SPDX-License-Identifier: MIT */
/* The processes with a context on a GPU, as listed by NVML. */
#pragma once

#include "agent/gpu/nvml_api.h"
#include "wire/message.h"

/* Replaces gpu->processes: each pid once, largest first, at most GPU_PROCESSES_MAX. Sets GPU_PROCESSES if the
 * list of compute processes could be read. */
void nvml_read_processes(const struct nvml_api *api, nvml_device device, struct gpu_state *gpu);
