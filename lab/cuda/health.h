/* SPDX-License-Identifier: MIT */
/* The health test of a GPU: how fast it copies and multiplies, and whether its memory keeps what it is given.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/cuda/gpu.h"

struct cuda_health {
    double to_gpu_gb_per_s, from_gpu_gb_per_s; // page-locked memory of the host
    double on_gpu_gb_per_s;                    // read and written by copies on the GPU
    double multiply_gflop_per_s;
    uint64_t wrong_products; // elements of the last product
    uint64_t tested_bytes;
    uint64_t wrong_words; // of the memory pattern and its complement
    uint64_t first_wrong; // offset in bytes of the lowest of them, if there is one
};

/* `memory_bytes` of the memory are tested: no more than is free. -EIO with a sentence when the driver fails;
 * wrong results are no failure of the call. */
int cuda_health_test(struct cuda_gpu *gpu, uint64_t memory_bytes, struct cuda_health *ret, struct error *err);

/* True if the GPU computed and remembered everything right. */
bool cuda_health_is_right(const struct cuda_health *health);
