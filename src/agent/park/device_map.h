/* SPDX-License-Identifier: MIT */
/* The mapping of GPU contents when a process is restored on other GPUs than it was saved on. */
#pragma once

#include <stddef.h>

#include "agent/park/cuda_api.h"
#include "base/error.h"
#include "base/record.h"
#include "base/strings.h"

/*
 * Pairs for all NVIDIA GPUs among `gpus` (struct gpu_state): the driver refuses a map that leaves one out,
 * and one that names one twice. The contents of home[i] go to the GPU of grants[i] (struct gpu_grant); a GPU
 * that is no longer used takes that one's place; all others stay. NULL and 0 if nothing moves. The caller
 * frees *ret.
 */
int device_map_make(const struct record_list *gpus, const struct strings *home,
    const struct record_list *grants, struct cuda_gpu_pair **ret, size_t *ret_count, struct error *err);
