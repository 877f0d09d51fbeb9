/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA GPUs through NVML, the library that comes with the driver. It is loaded at run time, so one binary
 * works on machines with and without it. Values that a driver does not provide are missing, not zero.
 *
 * NVML has its own order of GPUs. mgpu uses PCI bus order, like CUDA with CUDA_DEVICE_ORDER=PCI_BUS_ID, so
 * the handles are sorted by bus address once.
 *
 * Any call may hang for one GPU, so each is announced on the page. Only the start of the driver, and opening
 * a GPU's handle, which initialises the GPU, are given more time than the others. Once opening a GPU by its
 * number has hung, excluded GPUs are not even opened by number.
 *
 * MIG instances follow the GPUs, and share their keys. The sample of a GPU in MIG mode compares its layout
 * with the one that was found: another helper finds the new one.
 */
#include "agent/gpu/gpu.h"

#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gpu/nvml_api.h"
#include "agent/gpu/nvml_events.h"
#include "agent/gpu/nvml_mig.h"
#include "agent/gpu/nvml_processes.h"
#include "agent/gpu/nvml_values.h"
#include "agent/gpu/report.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "base/strings.h"

#define NVML_LINKS_MAX  64                  // links of one GPU; today there are at most 18
#define NVML_MEMORY_MAX (UINT64_C(1) << 46) // bytes; higher values of the driver are rejected

struct nvml_gpu {
    nvml_device device;
    bool has_pci;
    unsigned int domain, bus, slot, nvml_index;
    char key[GPU_KEY_SIZE];
    uint64_t links;        // bits of positions
    bool has_switch;       // it is linked to a device that is not a GPU
    unsigned int failures; // consecutive samples; used by its own thread
    struct nvml_layout layout;
    size_t parent; // of a MIG instance, which otherwise has only `device`, `key` and `failures`
    struct nvml_instance instance;
};

struct nvml {
    struct nvml_api api;
    bool is_initialised;
    struct gpu_progress *page;
    struct nvml_gpu *gpus;     // in PCI order, then the instances
    size_t n_whole;            // without the instances
    _Atomic bool is_outdated;  // a layout has changed
    struct nvml_gpu *left_out; // excluded from queries
    size_t n_left_out;
    size_t n_closed;            // GPUs that are listed but cannot be opened
    int closed_code;            // NVML's code for the last of these
    struct nvml_events *events; // of the GPUs, by their positions; NULL: not available
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
    free(nvml->left_out);
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

/* Opens the GPU by its number first, because even the query of its address may hang. False if NVML cannot
 * open it (it fell off the bus before this process started). */
static bool find_gpu(struct nvml *nvml, struct nvml_gpu *gpu, bool *ret_is_left_out)
{
    struct nvml_pci pci = { 0 };
    (void)snprintf(gpu->key, sizeof(gpu->key), "#%u", gpu->nvml_index);
    *ret_is_left_out = gpu_progress_is_left_out(nvml->page, gpu->key);
    if (*ret_is_left_out)
        return true;
    gpu_progress_enter_start(nvml->page, gpu->key);
    int code = nvml->api.handle(gpu->nvml_index, &gpu->device);
    if (code != NVML_SUCCESS) {
        nvml->n_closed++;
        nvml->closed_code = code;
        return false;
    }
    gpu_progress_enter(nvml->page, gpu->key);
    gpu->has_pci = nvml->api.pci != NULL && nvml->api.pci(gpu->device, &pci) == NVML_SUCCESS;
    if (!gpu->has_pci)
        return true;
    gpu->domain = pci.domain;
    gpu->bus = pci.bus;
    gpu->slot = pci.device;
    (void)snprintf(gpu->key, sizeof(gpu->key), "%04x:%02x:%02x.0", gpu->domain, gpu->bus, gpu->slot);
    *ret_is_left_out = gpu_progress_is_left_out(nvml->page, gpu->key);
    return true;
}

/* False as above. */
static bool open_known(struct nvml *nvml, const struct gpu_known *known, struct nvml_gpu *gpu)
{
    (void)snprintf(gpu->key, sizeof(gpu->key), "%s", known->key);
    gpu->has_pci = sscanf(known->key, "%x:%x:%x", &gpu->domain, &gpu->bus, &gpu->slot) == 3;
    if (gpu_progress_is_left_out(nvml->page, gpu->key))
        return true;
    gpu_progress_enter_start(nvml->page, gpu->key);
    int code =
        nvml->api.handle_at != NULL ? nvml->api.handle_at(gpu->key, &gpu->device) : NVML_FUNCTION_NOT_FOUND;
    if (code == NVML_SUCCESS)
        return true;
    nvml->n_closed++;
    nvml->closed_code = code;
    return false;
}

/* Some GPUs are released: opening handles by number would open them. */
static void find_known(struct nvml *nvml)
{
    const struct gpu_progress *page = nvml->page;
    nvml->gpus = xcalloc(page->n_known, sizeof(struct nvml_gpu));
    nvml->left_out = xcalloc(page->n_known, sizeof(struct nvml_gpu));
    for (unsigned int i = 0; i < page->n_known; i++) {
        struct nvml_gpu gpu = { .nvml_index = i };
        if (!open_known(nvml, &page->known[i], &gpu))
            continue;
        if (gpu_progress_is_left_out(page, gpu.key))
            nvml->left_out[nvml->n_left_out++] = gpu;
        else
            nvml->gpus[nvml->count++] = gpu;
    }
}

static int find_gpus(struct nvml *nvml, struct error *err)
{
    unsigned int count = 0;
    int code = nvml->api.count(&count);
    if (code != NVML_SUCCESS)
        return error_set(
            err, -EIO, "the NVIDIA driver cannot count its GPUs: %s", nvml_api_describe(&nvml->api, code));
    if (count > NODE_GPUS_MAX)
        return error_set(err, -ERANGE, "this node has %u GPUs; the maximum is %u", count, NODE_GPUS_MAX);
    nvml->gpus = xcalloc(count + 1, sizeof(struct nvml_gpu));
    nvml->left_out = xcalloc(count + 1, sizeof(struct nvml_gpu));
    for (unsigned int i = 0; i < count; i++) {
        struct nvml_gpu gpu = { .nvml_index = i };
        bool is_left_out = false;
        if (!find_gpu(nvml, &gpu, &is_left_out))
            continue;
        if (is_left_out)
            nvml->left_out[nvml->n_left_out++] = gpu;
        else
            nvml->gpus[nvml->count++] = gpu;
    }
    return 0;
}

static bool is_at(const struct nvml_gpu *gpu, const struct nvml_pci *pci)
{
    return gpu->has_pci && gpu->domain == pci->domain && gpu->bus == pci->bus && gpu->slot == pci->device;
}

/* The GPU at that address; the count if it is not in the list, for example an NVSwitch. */
static size_t find_by_pci(const struct nvml *nvml, const struct nvml_pci *pci)
{
    size_t k = 0;
    while (k < nvml->count && !is_at(&nvml->gpus[k], pci))
        k++;
    return k;
}

/* The peer of a link may be a GPU that is excluded and whose address is unknown. */
static bool is_switch(const struct nvml *nvml, const struct nvml_pci *pci)
{
    for (size_t k = 0; k < nvml->n_left_out; k++)
        if (!nvml->left_out[k].has_pci || is_at(&nvml->left_out[k], pci))
            return false;
    return true;
}

static void read_links(const struct nvml *nvml, struct nvml_gpu *gpu)
{
    for (unsigned int link = 0; link < NVML_LINKS_MAX; link++) {
        unsigned int is_active = 0;
        struct nvml_pci pci = { 0 };
        if (nvml->api.link_state(gpu->device, link, &is_active) != NVML_SUCCESS)
            break; // there are no more links
        if (is_active == 0)
            continue;
        /* If a fabric hides the device at the other end, that device is a switch. */
        bool is_known = nvml->api.link_pci(gpu->device, link, &pci) == NVML_SUCCESS;
        size_t other = is_known ? find_by_pci(nvml, &pci) : nvml->count;
        gpu->has_switch |= other == nvml->count && (!is_known || is_switch(nvml, &pci));
        if (other < nvml->count && other < 64)
            gpu->links |= UINT64_C(1) << other;
    }
}

/* A link to a switch connects the GPU to all others with such a link. */
static void find_links(struct nvml *nvml)
{
    if (nvml->api.link_state == NULL || nvml->api.link_pci == NULL)
        return;
    for (size_t i = 0; i < nvml->count; i++) {
        gpu_progress_enter(nvml->page, nvml->gpus[i].key);
        read_links(nvml, &nvml->gpus[i]);
    }
    for (size_t i = 0; i < nvml->count; i++)
        for (size_t k = 0; nvml->gpus[i].has_switch && k < nvml->count && k < 64; k++)
            if (k != i && nvml->gpus[k].has_switch)
                nvml->gpus[i].links |= UINT64_C(1) << k;
}

static void start_events(struct nvml *nvml)
{
    nvml_device devices[NODE_GPUS_MAX];
    const char *keys[NODE_GPUS_MAX];
    for (size_t i = 0; i < nvml->count; i++) {
        devices[i] = nvml->gpus[i].device;
        keys[i] = nvml->gpus[i].key;
    }
    nvml->events = nvml_events_start(&nvml->api, nvml->page, devices, keys, nvml->count);
}

/* Finds instances in the lists of their GPUs, each of which may be empty. */
static void find_instances(struct nvml *nvml)
{
    nvml->n_whole = nvml->count;
    for (size_t i = 0; i < nvml->n_whole; i++) {
        gpu_progress_enter(nvml->page, nvml->gpus[i].key);
        nvml_mig_read(&nvml->api, nvml->gpus[i].device, &nvml->gpus[i].layout);
        const struct nvml_layout layout = nvml->gpus[i].layout;
        if (nvml->count + layout.count > NODE_GPUS_MAX)
            continue;
        nvml->gpus = xreallocarray(nvml->gpus, nvml->count + layout.count + 1, sizeof(*nvml->gpus));
        for (size_t k = 0; k < layout.count; k++) {
            struct nvml_gpu *gpu = &nvml->gpus[nvml->count++];
            *gpu = (struct nvml_gpu){
                .device = layout.instances[k].device, .parent = i, .instance = layout.instances[k]
            };
            memcpy(gpu->key, nvml->gpus[i].key, sizeof(gpu->key));
        }
    }
}

/* Loads the module that CUDA needs besides the driver's own, and its device nodes. Programs of root load it
 * themselves; a container without root cannot. Silent if there is no such tool or need. */
static void load_memory_module(void)
{
    static char tool[] = "nvidia-modprobe", load[] = "-u", make_node[] = "-c=0";
    char *const arguments[] = { tool, load, make_node, NULL };
    pid_t pid = 0;
    if (posix_spawnp(&pid, tool, NULL, NULL, arguments, environ) == 0)
        (void)waitpid(pid, NULL, 0);
}

static int nvml_open(
    const struct gpu_spec *spec, struct gpu_progress *page, void **ret_state, struct error *err)
{
    _cleanup_(nvml_closep) struct nvml *nvml = xcalloc(1, sizeof(*nvml));
    nvml->page = page;
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
    load_memory_module();
    gpu_progress_enter(page, NULL);
    if (page != NULL && page->n_known > 0)
        find_known(nvml);
    else
        r = find_gpus(nvml, err);
    if (r < 0)
        return r;
    if (nvml->count > 1)
        qsort(nvml->gpus, nvml->count, sizeof(struct nvml_gpu), compare_pci);
    find_links(nvml);
    start_events(nvml);
    find_instances(nvml);
    *ret_state = take_ptr(nvml);
    return 0;
}

static void nvml_driver(void *state, char *text, size_t size)
{
    const struct nvml *nvml = state;
    gpu_progress_enter(nvml->page, NULL);
    bool is_known = nvml->api.driver != NULL && nvml->api.driver(text, (unsigned int)size) == NVML_SUCCESS;
    text[is_known ? size - 1 : 0] = '\0';
}

static size_t nvml_count(const void *state)
{
    const struct nvml *nvml = state;
    return nvml->count;
}

static const char *nvml_key(const void *state, size_t i)
{
    const struct nvml *nvml = state;
    return nvml->gpus[i].key;
}

static uint64_t read_size(const struct nvml *nvml, nvml_device device)
{
    struct nvml_memory memory = { 0 };
    bool is_known = nvml->api.memory != NULL && nvml->api.memory(device, &memory) == NVML_SUCCESS;
    return is_known && memory.total <= NVML_MEMORY_MAX ? memory.total : 0;
}

static void describe_instance(const struct nvml *nvml, const struct nvml_gpu *from, struct gpu_state *gpu)
{
    const struct nvml_gpu *parent = &nvml->gpus[from->parent];
    char text[NVML_TEXT_SIZE] = "";
    unsigned int minor;
    if (nvml->api.minor != NULL && nvml->api.minor(parent->device, &minor) == NVML_SUCCESS &&
        minor <= INT32_MAX)
        gpu->minor = (int32_t)minor;
    if (nvml->api.uuid(parent->device, text, sizeof(text)) == NVML_SUCCESS)
        gpu->parent = xstrndup(text, sizeof(text) - 1);
    else
        return; // without a UUID, it is dropped
    gpu->uuid = xstrdup(from->instance.uuid);
    gpu->model = nvml_mig_model(&nvml->api, &from->instance, read_size(nvml, parent->device));
    gpu->gpu_instance = from->instance.gpu_instance;
    gpu->compute_instance = from->instance.compute_instance;
    gpu->memory_bytes = read_size(nvml, from->device);
    if (parent->has_pci)
        gpu->pci = xasprintf("%04x:%02x:%02x.0", parent->domain, parent->bus, parent->slot);
}

/* The name of the card, as text. */
static char *shown_name(const char text[NVML_TEXT_SIZE])
{
    _cleanup_free_ char *name = xstrndup(text, NVML_TEXT_SIZE - 1);
    return text_escape_fit(name, NVML_TEXT_SIZE);
}

static void nvml_describe(void *state, size_t i, struct gpu_state *gpu)
{
    struct nvml *nvml = state;
    const struct nvml_gpu *from = &nvml->gpus[i];
    char text[NVML_TEXT_SIZE] = "";
    unsigned int minor, numa_node;
    gpu->index = (uint32_t)i;
    gpu->vendor = GPU_VENDOR_NVIDIA;
    gpu->minor = gpu->render_minor = -1;
    if (i >= nvml->n_whole) {
        describe_instance(nvml, from, gpu);
        return;
    }
    if (nvml->api.minor != NULL && nvml->api.minor(from->device, &minor) == NVML_SUCCESS &&
        minor <= INT32_MAX)
        gpu->minor = (int32_t)minor;
    if (nvml->api.uuid != NULL && nvml->api.uuid(from->device, text, sizeof(text)) == NVML_SUCCESS)
        gpu->uuid = xstrndup(text, sizeof(text) - 1);
    if (nvml->api.name != NULL && nvml->api.name(from->device, text, sizeof(text)) == NVML_SUCCESS)
        gpu->model = shown_name(text);
    else
        gpu->model = xstrdup("NVIDIA GPU");
    if (from->has_pci)
        gpu->pci = xasprintf("%04x:%02x:%02x.0", from->domain, from->bus, from->slot);
    gpu->memory_bytes = read_size(nvml, from->device);
    gpu->is_host_memory =
        nvml->api.numa_node != NULL && nvml->api.numa_node(from->device, &numa_node) == NVML_SUCCESS;
    gpu->links = from->links;
}

/* Between two layouts, its handle may refer to another instance. */
static bool is_there(struct nvml *nvml, size_t i)
{
    if (nvml_mig_is_there(&nvml->api, &nvml->gpus[i].instance))
        return true;
    nvml->is_outdated = true;
    return false;
}

static void read_instance(struct nvml *nvml, size_t i, bool is_sample, struct gpu_state *gpu)
{
    struct nvml_gpu *from = &nvml->gpus[i];
    if (!is_there(nvml, i)) {
        gpu->valid = 0;
        return;
    }
    nvml_events_read_instance(nvml->events, from->parent, from->instance.gpu_instance, gpu);
    if (is_sample)
        nvml_read_instance_values(&nvml->api, from->device, &from->failures, gpu);
    else
        nvml_read_memory(&nvml->api, from->device, &from->failures, gpu);
    nvml_read_processes(&nvml->api, from->device, gpu);
}

/* The processes of its instances are attributed to the instances. */
static void read_layout(struct nvml *nvml, size_t i, struct gpu_state *gpu)
{
    struct nvml_layout layout;
    nvml_mig_read(&nvml->api, nvml->gpus[i].device, &layout);
    if (layout.is_known && !nvml_mig_is_same(&layout, &nvml->gpus[i].layout))
        nvml->is_outdated = true;
    else if (layout.is_known && gpu->is_lost == 0)
        gpu->valid |= GPU_LAYOUT;
    if (!layout.is_on && (layout.is_known || !nvml->gpus[i].layout.is_on)) {
        nvml_read_processes(&nvml->api, nvml->gpus[i].device, gpu);
        return;
    }
    free(gpu->refusal);
    gpu->refusal = nvml_mig_refusal(&layout);
    gpu_processes_cut(&gpu->processes, 0);
}

static void nvml_sample(void *state, size_t i, struct gpu_state *gpu)
{
    struct nvml *nvml = state;
    if (i >= nvml->n_whole) {
        read_instance(nvml, i, true, gpu);
        return;
    }
    nvml_events_read(nvml->events, i, gpu);
    nvml_read_values(&nvml->api, nvml->gpus[i].device, &nvml->gpus[i].failures, gpu);
    read_layout(nvml, i, gpu);
}

static void nvml_look(void *state, size_t i, struct gpu_state *gpu)
{
    struct nvml *nvml = state;
    if (i >= nvml->n_whole) {
        read_instance(nvml, i, false, gpu);
        return;
    }
    nvml_events_read(nvml->events, i, gpu);
    nvml_read_memory(&nvml->api, nvml->gpus[i].device, &nvml->gpus[i].failures, gpu);
    if (nvml->gpus[i].layout.is_on)
        gpu_processes_cut(&gpu->processes, 0);
    else
        nvml_read_processes(&nvml->api, nvml->gpus[i].device, gpu);
}

static bool nvml_is_outdated(const void *state)
{
    const struct nvml *nvml = state;
    return nvml->is_outdated;
}

static void nvml_remark(void *state, char *text, size_t size)
{
    const struct nvml *nvml = state;
    if (nvml->n_closed > 0)
        (void)snprintf(text, size, "%zu cannot be opened: %s", nvml->n_closed,
            nvml_api_describe(&nvml->api, nvml->closed_code));
    else if (nvml->count + nvml->n_left_out == 0)
        (void)snprintf(text, size, "the driver lists no GPUs");
}

const struct gpu_backend gpu_nvml = {
    .name = "nvml",
    .open = nvml_open,
    .count = nvml_count,
    .driver = nvml_driver,
    .key = nvml_key,
    .describe = nvml_describe,
    .sample = nvml_sample,
    .look = nvml_look,
    .remark = nvml_remark,
    .is_outdated = nvml_is_outdated,
    .close = nvml_close,
};
