/* SPDX-License-Identifier: MIT */
/*
 * A value is a row of the table: how to read it, its bit, and the highest plausible value. Some drivers
 * return "success" with 4294967295 or the like; such values are dropped.
 */
#include "agent/gpu/nvml_values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/strings.h"

#define UTILIZATION_MAX 100U      // percent
#define TEMPERATURE_MAX 200U      // degrees Celsius
#define POWER_MAX       10000000U // milliwatts
#define CLOCK_MAX       100000U   // megahertz

#define NO_SYMBOL    (-1)
#define REASON_MAX   150U // bytes of what the driver calls an error
#define FAILURES_MAX 5U   // consecutive samples with an error before the GPU is lost

static int read_utilization(const struct nvml_api *api, nvml_device device, unsigned int *ret)
{
    struct nvml_utilization utilization = { 0 };
    int code = api->utilization == NULL ? NO_SYMBOL : api->utilization(device, &utilization);
    *ret = utilization.gpu;
    return code;
}

static int read_temperature(const struct nvml_api *api, nvml_device device, unsigned int *ret)
{
    return api->temperature == NULL ? NO_SYMBOL : api->temperature(device, NVML_TEMPERATURE_GPU, ret);
}

static int read_power(const struct nvml_api *api, nvml_device device, unsigned int *ret)
{
    return api->power == NULL ? NO_SYMBOL : api->power(device, ret);
}

static int read_power_limit(const struct nvml_api *api, nvml_device device, unsigned int *ret)
{
    return api->power_limit == NULL ? NO_SYMBOL : api->power_limit(device, ret);
}

static int read_sm_clock(const struct nvml_api *api, nvml_device device, unsigned int *ret)
{
    return api->clock == NULL ? NO_SYMBOL : api->clock(device, NVML_CLOCK_SM, ret);
}

static int read_memory_clock(const struct nvml_api *api, nvml_device device, unsigned int *ret)
{
    return api->clock == NULL ? NO_SYMBOL : api->clock(device, NVML_CLOCK_MEMORY, ret);
}

static const struct {
    int (*read)(const struct nvml_api *api, nvml_device device, unsigned int *ret);
    enum gpu_value bit;
    uint32_t max;
    size_t offset; // of a uint32_t in struct gpu_state
} values[] = {
    { read_utilization, GPU_UTILIZATION, UTILIZATION_MAX, offsetof(struct gpu_state, utilization_percent) },
    { read_temperature, GPU_TEMPERATURE, TEMPERATURE_MAX, offsetof(struct gpu_state, temperature_c) },
    { read_power, GPU_POWER, POWER_MAX, offsetof(struct gpu_state, power_mw) },
    { read_power_limit, GPU_POWER_LIMIT, POWER_MAX, offsetof(struct gpu_state, power_limit_mw) },
    { read_sm_clock, GPU_SM_CLOCK, CLOCK_MAX, offsetof(struct gpu_state, sm_clock_mhz) },
    { read_memory_clock, GPU_MEMORY_CLOCK, CLOCK_MAX, offsetof(struct gpu_state, memory_clock_mhz) },
};

/* Returns NVML's code. The newer call does not count the driver's own memory, so neither can replace the
 * other when a GPU fails. */
static int read_used(const struct nvml_api *api, nvml_device device, uint64_t *ret_used)
{
    struct nvml_memory memory = { 0 };
    struct nvml_memory_v2 newer = { .version = NVML_MEMORY_V2 };
    int newer_code = api->memory_v2 == NULL ? NVML_FUNCTION_NOT_FOUND : api->memory_v2(device, &newer);
    if (newer_code != NVML_NOT_SUPPORTED && newer_code != NVML_FUNCTION_NOT_FOUND &&
        newer_code != NVML_VERSION_MISMATCH) {
        *ret_used = newer.used;
        return newer_code;
    }
    int code = api->memory == NULL ? NO_SYMBOL : api->memory(device, &memory);
    *ret_used = memory.used;
    return code;
}

static void read_energy(const struct nvml_api *api, nvml_device device, struct gpu_state *gpu)
{
    unsigned long long millijoules = 0;
    if (api->energy == NULL || api->energy(device, &millijoules) != NVML_SUCCESS || millijoules == ~0ULL)
        return;
    gpu->energy_mj = millijoules;
    gpu->valid |= GPU_ENERGY;
}

/* Reads both counts or none, because one alone would look like both. */
static void read_ecc(const struct nvml_api *api, nvml_device device, struct gpu_state *gpu)
{
    unsigned long long corrected = 0, uncorrected = 0;
    if (api->ecc == NULL ||
        api->ecc(device, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE, &corrected) != NVML_SUCCESS ||
        api->ecc(device, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &uncorrected) != NVML_SUCCESS ||
        corrected == ~0ULL || uncorrected == ~0ULL)
        return;
    gpu->ecc_corrected = corrected;
    gpu->ecc_uncorrected = uncorrected;
    gpu->valid |= GPU_ECC;
}

/* Errors that concern the GPU as a whole; other codes do not. */
static const struct {
    int code;
    const char *trouble;
} losses[] = {
    { NVML_UNINITIALIZED, "the driver was restarted" },
    { NVML_NOT_FOUND, "the driver no longer knows it" },
    { NVML_NOT_LOADED, "the driver is no longer loaded" },
    { NVML_IS_LOST, "GPU has fallen off the bus" },
    { NVML_RESET_REQUIRED, "it needs a reset" },
};

static char *describe_loss(const struct nvml_api *api, int code, unsigned int failures)
{
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
        if (losses[i].code == code)
            return xstrdup(losses[i].trouble);
    if (failures < FAILURES_MAX)
        return NULL;
    _cleanup_free_ char *shown = text_escape_fit(nvml_api_describe(api, code), REASON_MAX);
    return xasprintf("the driver reports an error about it: %s", shown);
}

/* Any other code is an error that may be temporary, but not if it persists. */
static void note_code(
    const struct nvml_api *api, int code, bool is_sample, unsigned int *failures, struct gpu_state *gpu)
{
    if (code == NVML_SUCCESS || code == NVML_NOT_SUPPORTED || code == NO_SYMBOL)
        *failures = 0;
    else if (is_sample && *failures < FAILURES_MAX)
        ++*failures;
    free(gpu->trouble);
    gpu->trouble = describe_loss(api, code, *failures);
    gpu->is_lost = gpu->trouble != NULL;
    if (gpu->is_lost)
        gpu->valid = 0;
}

static void read_memory(const struct nvml_api *api, nvml_device device, bool is_sample,
    unsigned int *failures, struct gpu_state *gpu)
{
    uint64_t used = 0;
    int code = read_used(api, device, &used);
    gpu->valid &= ~(uint32_t)(GPU_MEMORY_USED | GPU_PROCESSES);
    note_code(api, code, is_sample, failures, gpu);
    if (code != NVML_SUCCESS || (gpu->memory_bytes != 0 && used > gpu->memory_bytes))
        return;
    gpu->memory_used_bytes = used;
    gpu->valid |= GPU_MEMORY_USED;
}

void nvml_read_memory(
    const struct nvml_api *api, nvml_device device, unsigned int *failures, struct gpu_state *gpu)
{
    read_memory(api, device, false, failures, gpu);
}

/* Reads modes that keep jobs away from a healthy GPU. A pending mode requires a reset first. */
static void read_modes(const struct nvml_api *api, nvml_device device, struct gpu_state *gpu)
{
    unsigned int mode = 0;
    if (api->compute_mode == NULL || api->compute_mode(device, &mode) != NVML_SUCCESS)
        mode = 0;
    gpu->is_one_process = mode == NVML_COMPUTE_PROCESS || mode == NVML_COMPUTE_THREAD;
    free(gpu->refusal);
    gpu->refusal = mode == NVML_COMPUTE_PROHIBITED ? xstrdup("its compute mode is Prohibited") : NULL;
}

/* The call succeeds as a whole even if it returns no value. */
static void read_recovery(const struct nvml_api *api, nvml_device device, struct gpu_state *gpu)
{
    struct nvml_field field = { .id = NVML_FIELD_RECOVERY, .code = NVML_NOT_SUPPORTED };
    if (api->fields == NULL || api->fields(device, 1, &field) != NVML_SUCCESS || field.code != NVML_SUCCESS ||
        field.value.number > GPU_RECOVERY_DRAIN_AND_RESET)
        return;
    gpu->recovery = field.value.number;
    gpu->valid |= GPU_RECOVERY;
}

void nvml_read_instance_values(
    const struct nvml_api *api, nvml_device device, unsigned int *failures, struct gpu_state *gpu)
{
    gpu->valid = 0;
    read_memory(api, device, true, failures, gpu);
}

void nvml_read_values(
    const struct nvml_api *api, nvml_device device, unsigned int *failures, struct gpu_state *gpu)
{
    gpu->valid = 0;
    read_memory(api, device, true, failures, gpu);
    if (gpu->is_lost)
        return;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        unsigned int value = 0;
        if (values[i].read(api, device, &value) != NVML_SUCCESS || value > values[i].max)
            continue;
        *(uint32_t *)(void *)((char *)gpu + values[i].offset) = value;
        gpu->valid |= (uint32_t)values[i].bit;
    }
    read_energy(api, device, gpu);
    read_ecc(api, device, gpu);
    read_recovery(api, device, gpu);
    read_modes(api, device, gpu);
}
