/* SPDX-License-Identifier: MIT */
/* A node without GPUs; also shows the complete interface of a backend. */
#include "agent/gpu/gpu.h"

static int none_open(
    const struct gpu_spec *spec, struct gpu_progress *page, void **ret_state, struct error *err)
{
    *ret_state = NULL;
    return 0;
}

static size_t none_count(const void *state)
{
    return 0;
}

static const char *none_key(const void *state, size_t i)
{
    return "";
}

static void none_describe(void *state, size_t i, struct gpu_state *gpu)
{
}

static void none_sample(void *state, size_t i, struct gpu_state *gpu)
{
}

static void none_close(void *state)
{
}

const struct gpu_backend gpu_none = {
    .name = "none",
    .open = none_open,
    .count = none_count,
    .key = none_key,
    .describe = none_describe,
    .sample = none_sample,
    .close = none_close,
};
