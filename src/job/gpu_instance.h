/* SPDX-License-Identifier: MIT */
/*
 * MIG instances: hardware partitions of a GPU, each treated as a GPU. The model of one is "MIG
 * PROFILE", as in "MIG 1g.18gb", without the name of its GPU: a request for an h200 is a request for a whole
 * GPU.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define GPU_INSTANCE_MODEL "MIG "

/* The profile of an instance with that model; NULL: it is a whole GPU, or unknown. */
static inline const char *gpu_instance_profile(const char *model)
{
    size_t length = strlen(GPU_INSTANCE_MODEL);
    return model != NULL && strncmp(model, GPU_INSTANCE_MODEL, length) == 0 ? model + length : NULL;
}
