/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA GPUs through NVML, the library that comes with the driver. It is opened when the program runs, so
 * that one binary serves machines with and without it. Values that a driver cannot give are missing, not
 * zero.
 *
 * NVML numbers GPUs in an order of its own. mgpu counts in PCI bus order, as CUDA does with
 * CUDA_DEVICE_ORDER=PCI_BUS_ID, so the handles are sorted by bus address once.
 */
#include "agent/gpu.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu_nvml_api.h"
#include "agent/gpu_nvml_events.h"
#include "agent/gpu_nvml_processes.h"
#include "agent/gpu_nvml_values.h"
#include "base/memory.h"

#define NVML_LINKS_MAX 64 // of one GPU; 18 is what there is today

struct nvml_gpu {
    nvml_device device;
    bool has_pci;
    unsigned int domain, bus, slot, nvml_index;
};

struct nvml {
    struct nvml_api api;
    bool is_initialised;
    struct nvml_gpu *gpus;      // in PCI order
    struct nvml_events *events; // of the GPUs, by their position; NULL: none will come
    size_t count;
};

static void nvml_close(void *state)
{
    struct nvml *nvml = state;
    if (nvml == NULL)
        return;
    nvml_events_stop(nvml->events);
    if (nvml->is_initialised && nvml->api.shutdown != NULL)
        (void)nvml->api.shutdown();
    nvml_api_unload(&nvml->api);
    free(nvml->gpus);
    free(nvml);
}

static void nvml_closep(struct nvml **nvml)
{
    nvml_close(*nvml);
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
        return error_set(
            err, -EIO, "the NVIDIA driver cannot count its GPUs: %s", nvml_api_describe(&nvml->api, code));
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

static void start_events(struct nvml *nvml)
{
    nvml_device devices[NODE_GPUS_MAX];
    for (size_t i = 0; i < nvml->count; i++)
        devices[i] = nvml->gpus[i].device;
    nvml->events = nvml_events_start(&nvml->api, devices, nvml->count);
}

static int nvml_open(const struct gpu_spec *spec, void **ret_state, struct error *err)
{
    _cleanup_(nvml_closep) struct nvml *nvml = xcalloc(1, sizeof(*nvml));
    int r = nvml_api_load(spec->nvml_library, &nvml->api, err);
    if (r < 0)
        return r;
    int code = nvml->api.init();
    if (code != NVML_SUCCESS) {
        (void)error_set(err, code == NVML_NOT_LOADED ? -ENODEV : -EIO, "the NVIDIA driver does not start: %s",
            code == NVML_NOT_LOADED ? "its kernel module is not loaded"
                                    : nvml_api_describe(&nvml->api, code));
        return error_hint(err, "run nvidia-smi to see what is wrong; a driver update may need a reboot");
    }
    nvml->is_initialised = true;
    r = find_gpus(nvml, err);
    if (r < 0)
        return r;
    start_events(nvml);
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
    unsigned int minor;
    gpu->index = (uint32_t)i;
    gpu->vendor = GPU_VENDOR_NVIDIA;
    gpu->minor = gpu->render_minor = -1;
    if (nvml->api.minor != NULL && nvml->api.minor(from->device, &minor) == NVML_SUCCESS &&
        minor <= INT32_MAX)
        gpu->minor = (int32_t)minor;
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

static void nvml_sample(void *state, size_t i, struct gpu_state *gpu)
{
    struct nvml *nvml = state;
    nvml_events_read(nvml->events, i, gpu);
    nvml_read_values(&nvml->api, nvml->gpus[i].device, gpu);
    nvml_read_processes(&nvml->api, nvml->gpus[i].device, gpu);
}

static void nvml_look(void *state, size_t i, struct gpu_state *gpu)
{
    struct nvml *nvml = state;
    nvml_events_read(nvml->events, i, gpu);
    nvml_read_memory(&nvml->api, nvml->gpus[i].device, gpu);
    nvml_read_processes(&nvml->api, nvml->gpus[i].device, gpu);
}

const struct gpu_backend gpu_nvml = {
    .name = "nvml",
    .open = nvml_open,
    .count = nvml_count,
    .describe = nvml_describe,
    .sample = nvml_sample,
    .look = nvml_look,
    .close = nvml_close,
};
