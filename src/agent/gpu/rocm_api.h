/* SPDX-License-Identifier: MIT */
/*
 * The part of ROCm SMI (librocm_smi64) that mgpu uses. The declarations are mgpu's own, because its headers
 * come only with ROCm. Measuring functions are optional: NULL if a version lacks them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define ROCM_SUCCESS      0
#define ROCM_CLOCK_SM     0
#define ROCM_CLOCK_MEMORY 4
#define ROCM_BLOCK_MEMORY UINT64_C(1) // the memory controller
#define ROCM_CLOCKS_SIZE  512U        // bytes; more than any version writes

/* Uses locks of this process instead of the machine: a killed helper must not leave one behind that blocks
 * other programs. Versions that do not support the flag ignore it. */
#define ROCM_INIT_OWN_LOCKS UINT64_C(0x400000000000000)

struct rocm_errors {
    uint64_t corrected, uncorrected;
    uint64_t reserved[6]; // in case a version writes more
};

struct rocm_api {
    void *library;
    int (*init)(uint64_t flags);
    int (*shut_down)(void);
    int (*status_string)(int code, const char **text);
    int (*count)(uint32_t *count);
    int (*pci)(uint32_t index, uint64_t *address);
    int (*energy)(uint32_t index, uint64_t *counter, float *microjoules, uint64_t *timestamp_ns);
    int (*power_limit)(uint32_t index, uint32_t sensor, uint64_t *microwatts);
    int (*clocks)(uint32_t index, int kind, void *clocks); // ROCM_CLOCKS_SIZE, see rocm_api_clock()
    int (*ecc_blocks)(uint32_t index, uint64_t *enabled);
    int (*ecc)(uint32_t index, uint64_t block, struct rocm_errors *errors);
};

/* Loads the library; `path` NULL: the paths used by ROCm and distributions. -ENODEV with a sentence. */
int rocm_api_load(const char *path, struct rocm_api *ret, struct error *err);

/* The library's text for its error code. */
const char *rocm_api_describe(const struct rocm_api *api, int code);

/* The current one of the clocks written by the library, in hertz. False if they are implausible. */
bool rocm_api_clock(const void *clocks, uint64_t *ret_hertz);
