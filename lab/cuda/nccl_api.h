/* SPDX-License-Identifier: MIT */
/*
 * The part of NVIDIA's NCCL that a check of several GPUs uses. The declarations are mgpu's own; the library
 * is the machine's, or comes with a framework.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

#define NCCL_LIBRARY "libnccl.so.2"
#define NCCL_UINT32  3
#define NCCL_SUM     0

typedef void *nccl_comm;

struct nccl_api {
    void *library;
    int (*version)(int *version); // 22703 is 2.27.3
    const char *(*error_text)(int code);
    int (*init_all)(nccl_comm *comms, int count, const int *devices);
    int (*destroy)(nccl_comm comm);
    int (*all_reduce)(
        const void *from, void *to, size_t count, int type, int operation, nccl_comm comm, void *stream);
    int (*group_start)(void);
    int (*group_end)(void);
};

/* Loads the library; `path` NULL: where the loader finds it. -ENODEV with a sentence. */
int nccl_api_load(const char *path, struct nccl_api *ret, struct error *err);
void nccl_api_unload(struct nccl_api *api);

/* -EIO with a sentence that names the call and NCCL's error when `code` is not success. */
int nccl_check(const struct nccl_api *api, int code, const char *call, struct error *err);
