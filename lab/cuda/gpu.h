/* SPDX-License-Identifier: MIT */
/* One GPU opened through CUDA or HIP, with the programs of kernels.cu loaded. */
#pragma once

#include <stdint.h>

#include "lab/cuda/api.h"

#define CUDA_PATTERN_SEED 0x9e3779b9U

struct cuda_gpu {
    const struct cuda_api *api;
    cuda_device device;
    cuda_context context; // NULL with HIP
    cuda_module module;   // NULL: the driver does not take the programs
    cuda_function fill, check, multiply, spin;
    unsigned int processors;
    uint64_t memory_bytes;
};

/* What the driver reports about a GPU without opening it. Texts are "" where the driver has none. */
struct cuda_description {
    char name[CUDA_TEXT_SIZE];
    char uuid[CUDA_TEXT_SIZE]; // "GPU-..."
    char pci[CUDA_TEXT_SIZE];  // "0000:3b:00.0"
    uint64_t memory_bytes;
    int major, minor; // of the compute capability; of an AMD GPU 9.0 for gfx90a
};

/* Returns -EIO with a sentence that names the call and the error when `code` is not success. `call`: CUDA's
 * name of the function. */
int cuda_check(const struct cuda_api *api, int code, const char *call, struct error *err);

int cuda_describe(const struct cuda_api *api, int number, struct cuda_description *ret, struct error *err);

/* The programs of kernels.cu for AMD GPUs of `arch` ("gfx90a"; NULL: the GPU in use). The caller frees the
 * code. -EIO with what the translator says. */
int cuda_hip_translate(
    const struct cuda_api *api, const char *arch, char **ret_code, size_t *ret_bytes, struct error *err);

/* Opens the GPU with that number. After a failure nothing is open. */
int cuda_gpu_open(const struct cuda_api *api, int number, struct cuda_gpu *ret, struct error *err);
void cuda_gpu_close(struct cuda_gpu *gpu);

/* Writes the pattern of `seed` to `words` words, and counts those that do not have it. */
int cuda_gpu_fill(struct cuda_gpu *gpu, cuda_pointer at, uint64_t words, uint32_t seed, struct error *err);
int cuda_gpu_count_wrong(struct cuda_gpu *gpu, cuda_pointer at, uint64_t words, uint32_t seed,
    uint64_t *ret_wrong, uint64_t *ret_first, struct error *err);

/* product = left * right, all n by n floats; n is a multiple of 16. Returns before the GPU has finished. */
int cuda_gpu_multiply(struct cuda_gpu *gpu, cuda_pointer left, cuda_pointer right, cuda_pointer product,
    uint32_t n, struct error *err);

/* Keeps the GPU busy for that time, and waits for it. */
int cuda_gpu_spin(struct cuda_gpu *gpu, uint64_t nanoseconds, struct error *err);
