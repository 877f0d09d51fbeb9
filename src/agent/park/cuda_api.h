/* SPDX-License-Identifier: MIT */
/*
 * The functions of CUDA's driver library that save and restore the GPU memory of another process. Declared
 * here, because mgpu is built without a CUDA toolkit: the layouts are those of CUDA 13.0.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define CUDA_OK               0
#define CUDA_INVALID_VALUE    1
#define CUDA_NOT_INITIALIZED  3
#define CUDA_NOT_READY        600   // a lock that has timed out
#define CUDA_VERSION_PARKABLE 13000 // driver 580: older ones can lose a process that they fail to save

enum cuda_state {
    CUDA_RUNNING,
    CUDA_LOCKED,       // its calls of CUDA block
    CUDA_CHECKPOINTED, // its GPU memory is in host memory, and it has no GPU open
    CUDA_FAILED,       // it cannot be continued
    CUDA_NO_STATE,     // the process does not use CUDA
};

struct cuda_lock_arguments {
    unsigned int timeout_ms, reserved;
    uint64_t reserved_more[7];
};

struct cuda_arguments {
    uint64_t reserved[8];
};

/* A GPU whose contents were saved, and the one to which they are restored. */
struct cuda_gpu_pair {
    unsigned char from[16], to[16]; // UUIDs
};

/* Without pairs, each GPU gets its own contents back. */
struct cuda_restore_arguments {
    struct cuda_gpu_pair *pairs;
    unsigned int count;
    char reserved[44];
    uint64_t reserved_more;
};

_Static_assert(sizeof(struct cuda_lock_arguments) == 64 && sizeof(struct cuda_arguments) == 64 &&
                   sizeof(struct cuda_restore_arguments) == 64,
    "the driver reads 64 bytes");

struct cuda_api {
    void *handle;
    int (*init)(unsigned int flags);
    int (*version)(int *ret);
    int (*error_name)(int error, const char **ret);
    int (*state)(int pid, int *ret);
    int (*lock)(int pid, struct cuda_lock_arguments *arguments);
    int (*checkpoint)(int pid, struct cuda_arguments *arguments);
    int (*restore)(int pid, struct cuda_restore_arguments *arguments);
    int (*unlock)(int pid, struct cuda_arguments *arguments);
};

/* Loads `path` (NULL: libcuda.so.1) and initializes it. -EOPNOTSUPP with the reason if it is missing, or
 * cannot save processes. It is never unloaded: its threads may run on. May hang in the driver. */
int cuda_api_load(const char *path, struct cuda_api *ret, struct error *err);

/* "CUDA_ERROR_NOT_SUPPORTED", or "error 801". Valid until the next call. */
const char *cuda_api_error(const struct cuda_api *api, int error);
