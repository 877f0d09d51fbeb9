/* SPDX-License-Identifier: MIT */
/* The names of each function of NVML are a table. */
#include "agent/gpu/nvml_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Where the loader finds the library, or where containers mount it without configuring the loader. */
static const char *const files[] = { NVML_LIBRARY, "/usr/local/nvidia/lib64/" NVML_LIBRARY,
    "/usr/lib/x86_64-linux-gnu/" NVML_LIBRARY, "/usr/lib64/" NVML_LIBRARY, "/usr/lib/wsl/lib/" NVML_LIBRARY };

static const struct {
    size_t offset;
    bool is_required;
    const char *names[3]; // newest first
} symbols[] = {
#define SYMBOL(member, required, ...)                                                                        \
    {                                                                                                        \
        offsetof(struct nvml_api, member), required,                                                         \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
    SYMBOL(init, true, "nvmlInit_v2", "nvmlInit"),
    SYMBOL(shutdown, false, "nvmlShutdown"),
    SYMBOL(error_string, false, "nvmlErrorString"),
    SYMBOL(driver, false, "nvmlSystemGetDriverVersion"),
    SYMBOL(count, true, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
    SYMBOL(handle, true, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
    SYMBOL(handle_at, false, "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"),
    SYMBOL(uuid, false, "nvmlDeviceGetUUID"),
    SYMBOL(name, false, "nvmlDeviceGetName"),
    SYMBOL(pci, false, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"),
    SYMBOL(minor, false, "nvmlDeviceGetMinorNumber"),
    SYMBOL(memory, false, "nvmlDeviceGetMemoryInfo"),
    SYMBOL(memory_v2, false, "nvmlDeviceGetMemoryInfo_v2"),
    SYMBOL(utilization, false, "nvmlDeviceGetUtilizationRates"),
    SYMBOL(temperature, false, "nvmlDeviceGetTemperature"),
    SYMBOL(power, false, "nvmlDeviceGetPowerUsage"),
    SYMBOL(power_limit, false, "nvmlDeviceGetEnforcedPowerLimit"),
    SYMBOL(energy, false, "nvmlDeviceGetTotalEnergyConsumption"),
    SYMBOL(clock, false, "nvmlDeviceGetClockInfo"),
    SYMBOL(ecc, false, "nvmlDeviceGetTotalEccErrors"),
    SYMBOL(mig_mode, false, "nvmlDeviceGetMigMode"),
    SYMBOL(mig_count, false, "nvmlDeviceGetMaxMigDeviceCount"),
    SYMBOL(mig_handle, false, "nvmlDeviceGetMigDeviceHandleByIndex"),
    SYMBOL(gpu_instance, false, "nvmlDeviceGetGpuInstanceId"),
    SYMBOL(compute_instance, false, "nvmlDeviceGetComputeInstanceId"),
    SYMBOL(attributes, false, "nvmlDeviceGetAttributes_v2"),
    SYMBOL(compute_mode, false, "nvmlDeviceGetComputeMode"),
    SYMBOL(numa_node, false, "nvmlDeviceGetNumaNodeId"),
    SYMBOL(fields, false, "nvmlDeviceGetFieldValues"),
    SYMBOL(link_state, false, "nvmlDeviceGetNvLinkState"),
    SYMBOL(link_pci, false, "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"),
    SYMBOL(
        compute, false, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
    SYMBOL(graphics, false, "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v2"),
    SYMBOL(mps, false, "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
    SYMBOL(compute_v1, false, "nvmlDeviceGetComputeRunningProcesses"),
    SYMBOL(graphics_v1, false, "nvmlDeviceGetGraphicsRunningProcesses"),
    SYMBOL(mps_v1, false, "nvmlDeviceGetMPSComputeRunningProcesses"),
    SYMBOL(event_set_create, false, "nvmlEventSetCreate"),
    SYMBOL(event_set_free, false, "nvmlEventSetFree"),
    SYMBOL(event_types, false, "nvmlDeviceGetSupportedEventTypes"),
    SYMBOL(event_register, false, "nvmlDeviceRegisterEvents"),
    SYMBOL(event_wait, false, "nvmlEventSetWait_v2", "nvmlEventSetWait"),
};

static int load_symbols(struct nvml_api *api, struct error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = NULL;
        for (size_t n = 0; symbol == NULL && n < 3 && symbols[i].names[n] != NULL; n++)
            symbol = dlsym(api->library, symbols[i].names[n]);
        if (symbol == NULL && symbols[i].is_required) {
            (void)error_set(err, -ENODEV, "the NVIDIA driver's library has no %s", symbols[i].names[0]);
            return error_hint(err, "install a current NVIDIA driver");
        }
        memcpy((char *)api + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

static void *open_library(const char *path, char *why, size_t size)
{
    void *library = dlopen(path != NULL ? path : files[0], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        (void)snprintf(why, size, "%s", dlerror());
    for (size_t i = 1; path == NULL && library == NULL && i < sizeof(files) / sizeof(files[0]); i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

int nvml_api_load(const char *path, struct nvml_api *ret, struct error *err)
{
    char why[256] = "";
    *ret = (struct nvml_api){ .library = open_library(path, why, sizeof(why)) };
    if (ret->library == NULL) {
        (void)error_set(err, -ENODEV, "no NVIDIA driver found: %s", why);
        return error_hint(err, path == NULL
                                   ? "install the NVIDIA driver, or try simulated GPUs with --gpus sim:8x24G"
                                   : "set --nvml-library to the library of the NVIDIA driver, or omit it");
    }
    int r = load_symbols(ret, err);
    if (r < 0)
        nvml_api_unload(ret);
    return r;
}

void nvml_api_unload(struct nvml_api *api)
{
    if (api->library != NULL)
        (void)dlclose(api->library);
    *api = (struct nvml_api){ 0 };
}

const char *nvml_api_describe(const struct nvml_api *api, int code)
{
    return api->error_string == NULL ? "unknown error" : api->error_string(code);
}
