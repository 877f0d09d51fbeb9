/* SPDX-License-Identifier: MIT */
/* The value of --gpus: where a node's GPUs come from. Parsed by mgpud, which passes it on, and by
 * mgpu-agent. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define GPU_SPEC_MODEL_SIZE 96U

enum gpu_spec_kind { GPU_SPEC_AUTO, GPU_SPEC_NONE, GPU_SPEC_SIM, GPU_SPEC_VENDOR };

struct gpu_spec {
    enum gpu_spec_kind kind;
    uint32_t vendor; // GPU_SPEC_VENDOR: its number (base/gpu_vendor.h)
    /* Not part of the text; borrowed. */
    const char *nvml_library; // NULL: the driver's own
    const char *rocm_library; // NULL: ROCm's default path
    const char *sysfs_root;   // NULL: "/sys"
    /* GPU_SPEC_SIM only */
    uint32_t count;
    uint64_t memory_bytes; // of each
    char model[GPU_SPEC_MODEL_SIZE];
};

/* "auto", "none", "nvml", "amd", "sim:8x24G", "sim:8x24G:MODEL". -EINVAL or -ERANGE with a sentence and a
 * hint. */
int gpu_spec_parse(const char *text, struct gpu_spec *ret, struct error *err);

/* The path of sysfs: "/sys" unless a test set another. */
const char *gpu_spec_sysfs(const struct gpu_spec *spec);
