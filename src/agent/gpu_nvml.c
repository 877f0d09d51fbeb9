/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA GPUs through NVML, the library that comes with the driver. It is opened when the program runs, so
 * that one binary serves machines with and without it; the few declarations needed are our own. Functions
 * come in versions: the newest name is tried first, and all but the first three are optional, because an old
 * driver lacks some: their values are then missing, not zero.
 *
 * NVML numbers GPUs in an order of its own. mgpu counts in PCI bus order, as CUDA does with
 * CUDA_DEVICE_ORDER=PCI_BUS_ID, so the handles are sorted by bus address once.
 */
#include "agent/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define NVML_LIBRARY          "libnvidia-ml.so.1"
#define NVML_SUCCESS          0
#define NVML_NOT_LOADED       9  // the kernel has no driver
#define NVML_IS_LOST          15 // fell off the bus
#define NVML_TEMPERATURE_GPU  0
#define NVML_TEXT_SIZE        96
#define NVML_LINKS_MAX        64 // of one GPU; 18 is what there is today
#define NVML_BUS_ID_SIZE      16 // nvmlPciInfo_t.busIdLegacy
#define NVML_BUS_ID_LONG_SIZE 32

typedef void *nvml_device; // opaque in NVML too

struct nvml_pci {
    char bus_id_legacy[NVML_BUS_ID_SIZE];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[NVML_BUS_ID_LONG_SIZE];
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_memory_v2 { // `used` without what the driver keeps for itself
    unsigned int version;
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 ((unsigned int)(sizeof(struct nvml_memory_v2) | (2U << 24)))

struct nvml_utilization {
    unsigned int gpu, memory;
};

struct nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int code);
    int (*count)(unsigned int *count);
    int (*handle)(unsigned int index, nvml_device *device);
    int (*uuid)(nvml_device device, char *text, unsigned int size);
    int (*name)(nvml_device device, char *text, unsigned int size);
    int (*pci)(nvml_device device, struct nvml_pci *pci);
    int (*memory)(nvml_device device, struct nvml_memory *memory);
    int (*memory_v2)(nvml_device device, struct nvml_memory_v2 *memory);
    int (*utilization)(nvml_device device, struct nvml_utilization *utilization);
    int (*temperature)(nvml_device device, int sensor, unsigned int *celsius);
    int (*power)(nvml_device device, unsigned int *milliwatts);
    int (*link_state)(nvml_device device, unsigned int link, unsigned int *is_active);
    int (*link_pci)(nvml_device device, unsigned int link, struct nvml_pci *pci);
};

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
    SYMBOL(count, true, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
    SYMBOL(handle, true, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
    SYMBOL(uuid, false, "nvmlDeviceGetUUID"),
    SYMBOL(name, false, "nvmlDeviceGetName"),
    SYMBOL(pci, false, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"),
    SYMBOL(memory, false, "nvmlDeviceGetMemoryInfo"),
    SYMBOL(memory_v2, false, "nvmlDeviceGetMemoryInfo_v2"),
    SYMBOL(utilization, false, "nvmlDeviceGetUtilizationRates"),
    SYMBOL(temperature, false, "nvmlDeviceGetTemperature"),
    SYMBOL(power, false, "nvmlDeviceGetPowerUsage"),
    SYMBOL(link_state, false, "nvmlDeviceGetNvLinkState"),
    SYMBOL(link_pci, false, "nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"),
};

struct nvml_gpu {
    nvml_device device;
    bool has_pci;
    unsigned int domain, bus, slot, nvml_index;
};

struct nvml {
    void *library;
    struct nvml_api api;
    bool is_initialised;
    struct nvml_gpu *gpus; // in PCI order
    size_t count;
};

static void nvml_close(void *state)
{
    struct nvml *nvml = state;
    if (nvml == NULL)
        return;
    if (nvml->is_initialised && nvml->api.shutdown != NULL)
        (void)nvml->api.shutdown();
    if (nvml->library != NULL)
        (void)dlclose(nvml->library);
    free(nvml->gpus);
    free(nvml);
}

static void nvml_closep(struct nvml **nvml)
{
    nvml_close(*nvml);
}

static int load_symbols(struct nvml *nvml, struct error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = NULL;
        for (size_t n = 0; symbol == NULL && n < 3 && symbols[i].names[n] != NULL; n++)
            symbol = dlsym(nvml->library, symbols[i].names[n]);
        if (symbol == NULL && symbols[i].is_required) {
            (void)error_set(err, -ENODEV, "the NVIDIA driver's library has no %s", symbols[i].names[0]);
            return error_hint(err, "install a current NVIDIA driver");
        }
        memcpy((char *)&nvml->api + symbols[i].offset, &symbol, sizeof(symbol));
    }
    return 0;
}

static const char *describe_code(const struct nvml *nvml, int code)
{
    return nvml->api.error_string == NULL ? "unknown error" : nvml->api.error_string(code);
}

static int compare_pci(const void *a, const void *b)
{
    const struct nvml_gpu *left = a, *right = b;
    const unsigned int keys[][2] = { { !left->has_pci, !right->has_pci }, { left->domain, right->domain },
        { left->bus, right->bus }, { left->slot, right->slot }, { left->nvml_index, right->nvml_index } };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

/* A GPU that NVML cannot hand out (it fell off the bus before we started) is passed over. */
static int find_gpus(struct nvml *nvml, struct error *err)
{
    unsigned int count = 0;
    int code = nvml->api.count(&count);
    if (code != NVML_SUCCESS)
        return error_set(err, -EIO, "the NVIDIA driver cannot count its GPUs: %s", describe_code(nvml, code));
    if (count > NODE_GPUS_MAX)
        return error_set(err, -ERANGE, "this node has %u GPUs; the most is %u", count, NODE_GPUS_MAX);
    nvml->gpus = xcalloc(count + 1, sizeof(struct nvml_gpu));
    for (unsigned int i = 0; i < count; i++) {
        struct nvml_gpu gpu = { .nvml_index = i };
        struct nvml_pci pci = { 0 };
        if (nvml->api.handle(i, &gpu.device) != NVML_SUCCESS)
            continue;
        gpu.has_pci = nvml->api.pci != NULL && nvml->api.pci(gpu.device, &pci) == NVML_SUCCESS;
        gpu.domain = pci.domain;
        gpu.bus = pci.bus;
        gpu.slot = pci.device;
        nvml->gpus[nvml->count++] = gpu;
    }
    qsort(nvml->gpus, nvml->count, sizeof(struct nvml_gpu), compare_pci);
    return 0;
}

static int nvml_open(const struct gpu_spec *spec, void **ret_state, struct error *err)
{
    _cleanup_(nvml_closep) struct nvml *nvml = xcalloc(1, sizeof(*nvml));
    nvml->library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (nvml->library == NULL) {
        (void)error_set(err, -ENODEV, "no NVIDIA driver found: %s", dlerror());
        return error_hint(err, "install the NVIDIA driver, or try simulated GPUs with --gpus sim:8x24G");
    }
    int r = load_symbols(nvml, err);
    if (r < 0)
        return r;
    int code = nvml->api.init();
    if (code != NVML_SUCCESS) {
        (void)error_set(err, code == NVML_NOT_LOADED ? -ENODEV : -EIO, "the NVIDIA driver does not start: %s",
            code == NVML_NOT_LOADED ? "its kernel module is not loaded" : describe_code(nvml, code));
        return error_hint(err, "run nvidia-smi to see what is wrong; a driver update may need a reboot");
    }
    nvml->is_initialised = true;
    r = find_gpus(nvml, err);
    if (r < 0)
        return r;
    *ret_state = take_ptr(nvml);
    return 0;
}

static size_t nvml_count(const void *state)
{
    const struct nvml *nvml = state;
    return nvml->count;
}

/* The GPU at that address; the count when it is none, such as an NVSwitch. */
static size_t find_by_pci(const struct nvml *nvml, const struct nvml_pci *pci)
{
    size_t k = 0;
    while (k < nvml->count && (!nvml->gpus[k].has_pci || nvml->gpus[k].domain != pci->domain ||
                                  nvml->gpus[k].bus != pci->bus || nvml->gpus[k].slot != pci->device))
        k++;
    return k;
}

/* Bits of the GPUs that NVLink leads to. A link to a switch leads to all others that have such a link. */
static uint64_t read_links(const struct nvml *nvml, size_t i, bool *ret_has_switch)
{
    uint64_t links = 0;
    *ret_has_switch = false;
    if (nvml->api.link_state == NULL || nvml->api.link_pci == NULL)
        return 0;
    for (unsigned int link = 0; link < NVML_LINKS_MAX; link++) {
        unsigned int is_active = 0;
        struct nvml_pci pci = { 0 };
        if (nvml->api.link_state(nvml->gpus[i].device, link, &is_active) != NVML_SUCCESS)
            break; // there are no more
        if (is_active == 0 || nvml->api.link_pci(nvml->gpus[i].device, link, &pci) != NVML_SUCCESS)
            continue;
        size_t other = find_by_pci(nvml, &pci);
        *ret_has_switch |= other == nvml->count;
        if (other < nvml->count && other < 64)
            links |= UINT64_C(1) << other;
    }
    return links;
}

static uint64_t find_links(const struct nvml *nvml, size_t i)
{
    bool has_switch = false, other_has = false;
    uint64_t links = read_links(nvml, i, &has_switch);
    for (size_t k = 0; has_switch && k < nvml->count && k < 64; k++) {
        (void)read_links(nvml, k, &other_has);
        if (k != i && other_has)
            links |= UINT64_C(1) << k;
    }
    return links;
}

static void nvml_describe(void *state, size_t i, struct gpu_state *gpu)
{
    struct nvml *nvml = state;
    const struct nvml_gpu *from = &nvml->gpus[i];
    char text[NVML_TEXT_SIZE] = "";
    struct nvml_memory memory;
    gpu->index = (uint32_t)i;
    if (nvml->api.uuid != NULL && nvml->api.uuid(from->device, text, sizeof(text)) == NVML_SUCCESS)
        gpu->uuid = xstrndup(text, sizeof(text) - 1);
    else
        gpu->uuid = xasprintf("GPU-index-%zu", i);
    if (nvml->api.name != NULL && nvml->api.name(from->device, text, sizeof(text)) == NVML_SUCCESS)
        gpu->model = xstrndup(text, sizeof(text) - 1);
    else
        gpu->model = xstrdup("NVIDIA GPU");
    if (from->has_pci)
        gpu->pci = xasprintf("%04x:%02x:%02x.0", from->domain, from->bus, from->slot);
    if (nvml->api.memory != NULL && nvml->api.memory(from->device, &memory) == NVML_SUCCESS)
        gpu->memory_bytes = memory.total;
    gpu->links = find_links(nvml, i);
}

/* Returns NVML's code; the newer call does not count what the driver keeps for itself. */
static int read_memory(struct nvml *nvml, nvml_device device, uint64_t *ret_used)
{
    struct nvml_memory memory = { 0 };
    struct nvml_memory_v2 newer = { .version = NVML_MEMORY_V2 };
    if (nvml->api.memory_v2 != NULL && nvml->api.memory_v2(device, &newer) == NVML_SUCCESS) {
        *ret_used = newer.used;
        return NVML_SUCCESS;
    }
    if (nvml->api.memory == NULL)
        return -1;
    int code = nvml->api.memory(device, &memory);
    *ret_used = memory.used;
    return code;
}

static void nvml_sample(void *state, size_t i, struct gpu_state *gpu)
{
    struct nvml *nvml = state;
    nvml_device device = nvml->gpus[i].device;
    struct nvml_utilization utilization;
    gpu->valid = 0;
    int code = read_memory(nvml, device, &gpu->memory_used_bytes);
    gpu->is_lost = code == NVML_IS_LOST;
    if (gpu->is_lost)
        return;
    if (code == NVML_SUCCESS)
        gpu->valid |= GPU_MEMORY_USED;
    if (nvml->api.utilization != NULL && nvml->api.utilization(device, &utilization) == NVML_SUCCESS) {
        gpu->utilization_percent = utilization.gpu;
        gpu->valid |= GPU_UTILIZATION;
    }
    if (nvml->api.temperature != NULL &&
        nvml->api.temperature(device, NVML_TEMPERATURE_GPU, &gpu->temperature_c) == NVML_SUCCESS)
        gpu->valid |= GPU_TEMPERATURE;
    if (nvml->api.power != NULL && nvml->api.power(device, &gpu->power_mw) == NVML_SUCCESS)
        gpu->valid |= GPU_POWER;
}

const struct gpu_backend gpu_nvml = {
    .name = "nvml",
    .open = nvml_open,
    .count = nvml_count,
    .describe = nvml_describe,
    .sample = nvml_sample,
    .close = nvml_close,
};
