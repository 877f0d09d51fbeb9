/* SPDX-License-Identifier: MIT */
/* The GPU used by a separate program, without mgpu. */

#include "lab/kit/kit.h"
#include "lab/kit/probe.h"

#define HEALTH_MS 90000
#define SHORT_MS  30000

static void check_health(struct kit *kit, struct result *result)
{
    static const char *const arguments[] = { "health", "-m", "16G", NULL };
    const json_t *probe = probe_run(kit, arguments, HEALTH_MS, result);
    if (result->outcome != OUTCOME_PASSED)
        return;
    result_pass(result,
        "%.1f and %.1f GB/s over the bus, %.0f GB/s on the GPU, %.0f GFLOP/s, %.1f GiB tested",
        json_real_value(json_object_get(probe, "to_gpu_gb_per_s")),
        json_real_value(json_object_get(probe, "from_gpu_gb_per_s")),
        json_real_value(json_object_get(probe, "on_gpu_gb_per_s")),
        json_real_value(json_object_get(probe, "multiply_gflop_per_s")),
        (double)json_integer_value(json_object_get(probe, "tested_bytes")) / (1 << 30));
}

static void check_managed(struct kit *kit, struct result *result)
{
    static const char *const arguments[] = { "managed", "-s", "0", NULL };
    (void)probe_run(kit, arguments, SHORT_MS, result);
}

/* One run that is not timed, because the driver may have to load a module. */
static void check_start(struct kit *kit, struct result *result)
{
    static const char *const arguments[] = { "hold", "-m", "64M", "-s", "0", NULL };
    (void)probe_run(kit, arguments, SHORT_MS, result);
    if (result->outcome == OUTCOME_PASSED)
        (void)probe_run(kit, arguments, SHORT_MS, result);
}

const struct check kit_cuda_checks[] = {
    { "cuda-start", "start of a program that takes 64 MiB", 800, NEED_CUDA, check_start, RANK_HIGH },
    { "cuda-health", "speeds and memory", 600, NEED_CUDA, check_health, RANK_MIDDLE },
    { "cuda-managed", "memory shared by GPU and program", 300, NEED_CUDA, check_managed, RANK_MIDDLE },
    { 0 },
};
