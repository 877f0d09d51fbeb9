/* SPDX-License-Identifier: MIT */
/*
 * AMD GPUs as the kernel's driver shows them in sysfs. No library is required; values that sysfs lacks come
 * from ROCm's if it is installed (gpu/rocm.c). class/drm has a card for each GPU that can draw, class/kfd a
 * node for each that can compute: GPUs in both are available to jobs. They are numbered in the order of their
 * PCI addresses.
 *
 * The UUID is derived from the GPU's unique id as ROCm writes it, so that it can be used in
 * ROCR_VISIBLE_DEVICES. Desktop GPUs have none; they are identified by their slot.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/amd_kfd.h"
#include "agent/gpu/gpu.h"
#include "agent/gpu/rocm.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "base/strings.h"

#define FILE_MAX        4096U
#define UTILIZATION_MAX 100U
#define MEMORY_MAX      (UINT64_C(1) << 46) // bytes; higher values of the driver are rejected
#define MODEL_MAX       96U                 // bytes, the size in the record
#define WORD_MAX        16U                 // bytes of a name in a sentence
#define WHOLE           "SPX"

struct amd_gpu {
    char pci[GPU_KEY_SIZE];
    char *folder; // class/drm/cardN/device
    char *hwmon;  // its directory of sensors; NULL: none
    const struct amd_node *node;
};

struct amd {
    char *sysfs;
    struct gpu_progress *page;
    struct amd_node *nodes;
    size_t n_nodes;
    struct amd_gpu *gpus; // in PCI order
    size_t count;
    struct rocm *rocm; // of the GPUs, by their positions
};

static void amd_close(void *state)
{
    struct amd *amd = state;
    if (amd == NULL)
        return;
    rocm_stop(amd->rocm);
    for (size_t i = 0; i < amd->count; i++) {
        free(amd->gpus[i].folder);
        free(amd->gpus[i].hwmon);
    }
    free(amd->gpus);
    free(amd->nodes);
    free(amd->sysfs);
    free(amd);
}

static void amd_closep(struct amd **amd)
{
    amd_close(*amd);
}

/* --- files --- */

/* The first line; NULL if there is none or it is empty. The caller frees it. */
static char *read_line(const char *folder, const char *name)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
    if (file_read(AT_FDCWD, path, FILE_MAX, &text) < 0)
        return NULL;
    size_t length = strcspn(buffer_text(&text), "\n");
    return length > 0 ? xstrndup(buffer_text(&text), length) : NULL;
}

static bool read_number(const char *folder, const char *name, int base, uint64_t *ret)
{
    _cleanup_free_ char *line = folder != NULL ? read_line(folder, name) : NULL;
    char *end = line;
    errno = 0;
    uint64_t number = line != NULL && isxdigit((unsigned char)*line) ? strtoull(line, &end, base) : 0;
    if (end == line || errno == ERANGE)
        return false;
    *ret = number;
    return true;
}

/* The first entry of a directory with this beginning; the caller frees it. */
static char *find_entry(const char *folder, const char *beginning)
{
    char *found = NULL;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return NULL;
    for (const struct dirent *entry; found == NULL && (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, beginning, strlen(beginning)) == 0)
            found = xstrdup(entry->d_name);
    (void)closedir(dir);
    return found;
}

/* --- finding them --- */

/* The address is the last component of the link's target. */
static bool read_address(const char *folder, char pci[GPU_KEY_SIZE])
{
    char place[PATH_MAX];
    ssize_t n = readlink(folder, place, sizeof(place) - 1);
    if (n <= 0)
        return false;
    place[n] = '\0';
    const char *slash = strrchr(place, '/');
    const char *name = slash != NULL ? slash + 1 : place;
    return strlen(name) < GPU_KEY_SIZE && snprintf(pci, GPU_KEY_SIZE, "%s", name) > 0;
}

static const struct amd_node *find_node(const struct amd *amd, const char *pci)
{
    for (size_t i = 0; i < amd->n_nodes; i++)
        if (strcmp(amd->nodes[i].pci, pci) == 0)
            return &amd->nodes[i];
    return NULL;
}

/* Partitions of a GPU and the outputs of a card ("card0-DP-1") are not GPUs. */
static bool is_card(const char *name)
{
    size_t digits = strncmp(name, "card", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
    return digits > 0 && name[4 + digits] == '\0';
}

static bool is_of_amd(uint64_t vendor)
{
    return vendor == gpu_vendor_of(GPU_VENDOR_AMD)->pci_vendor;
}

static void add_card(struct amd *amd, const char *name)
{
    struct amd_gpu gpu = { 0 };
    uint64_t vendor = 0;
    _cleanup_free_ char *folder = xasprintf("%s/class/drm/%s/device", amd->sysfs, name);
    if (!read_address(folder, gpu.pci) || gpu_progress_is_left_out(amd->page, gpu.pci))
        return;
    gpu_progress_enter(amd->page, gpu.pci);
    if (!read_number(folder, "vendor", 16, &vendor) || !is_of_amd(vendor) || amd->count == NODE_GPUS_MAX)
        return;
    gpu.node = find_node(amd, gpu.pci);
    if (gpu.node == NULL)
        return;
    _cleanup_free_ char *sensors = xasprintf("%s/hwmon", folder);
    _cleanup_free_ char *sensor = find_entry(sensors, "hwmon");
    gpu.hwmon = sensor != NULL ? xasprintf("%s/%s", sensors, sensor) : NULL;
    gpu.folder = take_ptr(folder);
    amd->gpus = xreallocarray(amd->gpus, amd->count + 1, sizeof(*amd->gpus));
    amd->gpus[amd->count++] = gpu;
}

static int compare_pci(const void *a, const void *b)
{
    return strcmp(((const struct amd_gpu *)a)->pci, ((const struct amd_gpu *)b)->pci);
}

static int find_gpus(struct amd *amd, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/class/drm", amd->sysfs);
    DIR *dir = opendir(path);
    if (dir != NULL) {
        for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
            if (is_card(entry->d_name))
                add_card(amd, entry->d_name);
        (void)closedir(dir);
    }
    if (amd->count > 1)
        qsort(amd->gpus, amd->count, sizeof(*amd->gpus), compare_pci);
    if (amd->count > 0 || (amd->page != NULL && (amd->page->n_left_out > 0 || amd->page->n_known > 0)))
        return 0;
    (void)error_set(err, -ENODEV, "no AMD GPU with compute support found in %s", path);
    return error_hint(err, "load the amdgpu driver with kfd");
}

static struct rocm *start_rocm(const struct amd *amd, const char *library)
{
    const char *addresses[NODE_GPUS_MAX];
    for (size_t i = 0; i < amd->count; i++)
        addresses[i] = amd->gpus[i].pci;
    return amd->count > 0 ? rocm_start(library, addresses, amd->count) : NULL;
}

static int amd_open(
    const struct gpu_spec *spec, struct gpu_progress *page, void **ret_state, struct error *err)
{
    _cleanup_(amd_closep) struct amd *amd = xcalloc(1, sizeof(*amd));
    amd->sysfs = xstrdup(gpu_spec_sysfs(spec));
    amd->page = page;
    amd->nodes = amd_kfd_nodes(amd->sysfs, &amd->n_nodes);
    int r = find_gpus(amd, err);
    if (r < 0)
        return r;
    gpu_progress_enter(page, NULL);
    amd->rocm = start_rocm(amd, spec->rocm_library);
    *ret_state = take_ptr(amd);
    return 0;
}

static size_t amd_count(const void *state)
{
    const struct amd *amd = state;
    return amd->count;
}

static const char *amd_key(const void *state, size_t i)
{
    const struct amd *amd = state;
    return amd->gpus[i].pci;
}

/* --- describing them --- */

static uint64_t find_links(const struct amd *amd, const struct amd_node *from)
{
    uint64_t links = 0;
    for (size_t k = 0; k < amd->count && k < 64; k++)
        for (size_t n = 0; n < from->n_links; n++)
            if (from->links[n] == amd->gpus[k].node->number && amd->gpus[k].node != from)
                links |= UINT64_C(1) << k;
    return links;
}

static char *name_model(const char *folder)
{
    _cleanup_free_ char *product = read_line(folder, "product_name");
    if (product != NULL)
        return text_escape_fit(product, MODEL_MAX); // of the card's EEPROM
    _cleanup_free_ char *device = read_line(folder, "device");
    _cleanup_free_ char *shown = device != NULL ? text_escape_fit(device, WORD_MAX) : NULL;
    return shown != NULL ? xasprintf("AMD GPU %s", shown) : xstrdup("AMD GPU");
}

static int32_t read_render_minor(const char *folder)
{
    _cleanup_free_ char *nodes = xasprintf("%s/drm", folder);
    _cleanup_free_ char *name = find_entry(nodes, "renderD");
    long number = name != NULL ? strtol(name + strlen("renderD"), NULL, 10) : -1;
    return number > 0 && number <= INT32_MAX ? (int32_t)number : -1;
}

static void amd_describe(void *state, size_t i, struct gpu_state *gpu)
{
    const struct amd *amd = state;
    const struct amd_gpu *from = &amd->gpus[i];
    uint64_t unique = 0, bytes = 0;
    gpu->index = (uint32_t)i;
    gpu->vendor = GPU_VENDOR_AMD;
    gpu->minor = -1;
    gpu->render_minor = read_render_minor(from->folder);
    gpu->pci = xstrdup(from->pci);
    gpu->uuid = read_number(from->folder, "unique_id", 16, &unique) && unique != 0
                    ? xasprintf("GPU-%016" PRIx64, unique)
                    : xasprintf("PCI-%s", from->pci);
    gpu->model = name_model(from->folder);
    if (read_number(from->folder, "mem_info_vram_total", 10, &bytes) && bytes <= MEMORY_MAX)
        gpu->memory_bytes = bytes;
    gpu->links = find_links(amd, from->node);
}

/* --- measuring them --- */

/* One row per sensor: its file, the factor to convert its unit, and the highest plausible value. */
static const struct {
    bool is_sensor; // in the directory of sensors
    const char *names[3];
    enum gpu_value bit;
    uint64_t divisor, max;
    size_t offset; // of a uint32_t in struct gpu_state
} values[] = {
    { false, { "gpu_busy_percent" }, GPU_UTILIZATION, 1, UTILIZATION_MAX,
        offsetof(struct gpu_state, utilization_percent) },
    { true, { "temp1_input", "temp2_input", "temp3_input" }, GPU_TEMPERATURE, 1000, 200,
        offsetof(struct gpu_state, temperature_c) },
    { true, { "power1_average", "power1_input" }, GPU_POWER, 1000, 10000000,
        offsetof(struct gpu_state, power_mw) },
    { true, { "power1_cap" }, GPU_POWER_LIMIT, 1000, 10000000, offsetof(struct gpu_state, power_limit_mw) },
    { true, { "freq1_input" }, GPU_SM_CLOCK, 1000000, 100000, offsetof(struct gpu_state, sm_clock_mhz) },
    { true, { "freq2_input" }, GPU_MEMORY_CLOCK, 1000000, 100000,
        offsetof(struct gpu_state, memory_clock_mhz) },
};

static void read_value(const struct amd_gpu *from, size_t row, struct gpu_state *gpu)
{
    const char *folder = values[row].is_sensor ? from->hwmon : from->folder;
    uint64_t number = 0;
    bool is_read = false;
    for (size_t n = 0; n < 3 && !is_read && values[row].names[n] != NULL; n++)
        is_read = read_number(folder, values[row].names[n], 10, &number);
    if (!is_read || number / values[row].divisor > values[row].max)
        return;
    *(uint32_t *)(void *)((char *)gpu + values[row].offset) = (uint32_t)(number / values[row].divisor);
    gpu->valid |= (uint32_t)values[row].bit;
}

/* Reads "ue: 0" and "ce: 3", counters of the memory controller; both or none. */
static void read_ecc(const struct amd_gpu *from, struct gpu_state *gpu)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/ras/umc_err_count", from->folder);
    uint64_t uncorrected, corrected;
    if (file_read(AT_FDCWD, path, FILE_MAX, &text) < 0 ||
        sscanf(buffer_text(&text), "ue: %" SCNu64 " ce: %" SCNu64, &uncorrected, &corrected) != 2)
        return;
    gpu->ecc_uncorrected = uncorrected;
    gpu->ecc_corrected = corrected;
    gpu->valid |= GPU_ECC;
}

static void read_energy(const struct amd_gpu *from, struct gpu_state *gpu)
{
    uint64_t microjoules = 0;
    if (!read_number(from->hwmon, "energy1_input", 10, &microjoules))
        return;
    gpu->energy_mj = microjoules / 1000;
    gpu->valid |= GPU_ENERGY;
}

/* A job gets one render node, that of the first partition. The mode can change at any time. */
static void read_partition(const char *folder, struct gpu_state *gpu)
{
    _cleanup_free_ char *mode = read_line(folder, "current_compute_partition");
    bool is_whole = mode == NULL || strcmp(mode, WHOLE) == 0;
    _cleanup_free_ char *shown = is_whole ? NULL : text_escape_fit(mode, WORD_MAX);
    free(gpu->refusal);
    gpu->refusal = is_whole ? NULL
                            : xasprintf("its compute partition mode is %s, and mgpu offers whole GPUs only "
                                        "(" WHOLE ")",
                                  shown);
}

static void amd_sample(void *state, size_t i, struct gpu_state *gpu)
{
    const struct amd *amd = state;
    const struct amd_gpu *from = &amd->gpus[i];
    uint64_t used = 0, vendor = 0;
    gpu->valid = 0;
    gpu->is_lost = !read_number(from->folder, "vendor", 16, &vendor) || !is_of_amd(vendor);
    free(gpu->trouble);
    gpu->trouble = xstrdup(gpu->is_lost != 0 ? "the driver no longer lists it" : NULL);
    if (gpu->is_lost != 0)
        return;
    if (read_number(from->folder, "mem_info_vram_used", 10, &used) && used <= gpu->memory_bytes) {
        gpu->memory_used_bytes = used;
        gpu->valid |= GPU_MEMORY_USED;
    }
    for (size_t row = 0; row < sizeof(values) / sizeof(values[0]); row++)
        read_value(from, row, gpu);
    read_energy(from, gpu);
    read_ecc(from, gpu);
    read_partition(from->folder, gpu);
    rocm_fill(amd->rocm, i, gpu);
    amd_kfd_processes(amd->sysfs, from->node->gpu_id, gpu);
}

static void amd_remark(void *state, char *text, size_t size)
{
    const struct amd *amd = state;
    rocm_remark(amd->rocm, text, size);
}

const struct gpu_backend gpu_amd = {
    .name = "amd",
    .open = amd_open,
    .count = amd_count,
    .key = amd_key,
    .describe = amd_describe,
    .sample = amd_sample,
    .remark = amd_remark,
    .close = amd_close,
};
