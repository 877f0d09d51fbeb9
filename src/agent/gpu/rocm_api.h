/* SPDX-License-Identifier: MIT */
/*
 * The part of ROCm SMI (librocm_smi64) that mgpu calls. The few declarations needed are our own, because its
 * headers come with ROCm alone. What it measures is optional: NULL where a version lacks it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define ROCM_SUCCESS      0
#define ROCM_CLOCK_SM     0
#define ROCM_CLOCK_MEMORY 4
#define ROCM_BLOCK_MEMORY UINT64_C(1) // the memory's controller
#define ROCM_CLOCKS_SIZE  512U        // bytes; more than any version writes

/* Locks of this process, not of the machine: a helper that is killed must not leave one behind that other
 * programs wait for. Versions that do not know it ignore it. */
#define ROCM_INIT_OWN_LOCKS UINT64_C(0x400000000000000)

struct rocm_errors {
    uint64_t corrected, uncorrected;
    uint64_t reserved[6]; // should a version write more
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

/* Loads the library; `path` NULL: where ROCm and distributions put it. -ENODEV with a sentence. */
int rocm_api_load(const char *path, struct rocm_api *ret, struct error *err);

/* Lets go of the library; fine on what was never loaded. */
void rocm_api_unload(struct rocm_api *api);

/* The library's own words for its code. */
const char *rocm_api_describe(const struct rocm_api *api, int code);

/* The current one of the clocks that the library wrote, in hertz. False when they make no sense. */
bool rocm_api_clock(const void *clocks, uint64_t *ret_hertz);
