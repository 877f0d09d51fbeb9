/* SPDX-License-Identifier: MIT */
/* The process that calls ROCm's library, and its output to a pipe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ROCM_PERIOD_MS 1000
#define ROCM_WHY_SIZE  192U

struct rocm_values {
    uint32_t valid; // enum gpu_value
    uint32_t power_limit_mw, sm_clock_mhz, memory_clock_mhz;
    uint64_t energy_mj, ecc_corrected, ecc_uncorrected;
};

/* Values of one GPU, or a message about all: that none can be read, with `why`, or that all have been read.
 * Shorter than PIPE_BUF, so that writes are atomic. */
struct rocm_news {
    uint32_t position; // ROCM_ALL_GPUS, or the position of the GPU's address
    struct rocm_values values;
    char why[ROCM_WHY_SIZE]; // the library cannot be used; nothing follows
};
#define ROCM_ALL_GPUS UINT32_MAX

/* Reads the GPUs at these PCI addresses once per period and writes to `fd` until the reader closes. `library`
 * NULL: ROCm's default path. */
void rocm_reader_run(int fd, const char *library, const char *const *addresses, size_t count);
