/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA: /dev/nvidiaN has major 195, and N is the driver's "Device Minor", which need not be the index in
 * PCI order. Every user of a GPU also needs nvidiactl and nvidia-uvm, and nvidia-fs to read files directly
 * into it. A MIG instance is used through the node of its GPU and two of /dev/nvidia-caps, whose minors are
 * in the driver's files: that of the GPU instance and that of the compute instance. The other devices of the
 * driver (capabilities, fabric) are for administration or other GPUs and are denied; so are IMEX channels,
 * which NVLink between nodes needs, unless the site allows them. AMD: /dev/kfd is shared by all GPUs,
 * /dev/dri/renderD* is per GPU. Render nodes have major 226 for all vendors; sysfs links a GPU's PCI address
 * to its render node.
 */
#include "agent/gpu/devices.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"
#include "job/event.h"
#include "wire/message.h"

#define NUMAS_MAX          64 // in a set
#define NVIDIA_MAJOR       195U
#define NVIDIA_MODESET     254U // minors that every user of a GPU shares: nvidia-modeset and nvidiactl
#define NVIDIA_CTL         255U
#define DRM_MAJOR          226U
#define PROC_DEVICES_MAX   65536U
#define NVIDIA_PROC_MAX    8192U
#define NVIDIA_NAME        "nvidia" // begins the names of all its drivers
#define CAPS_DRIVER        "nvidia-caps"
#define CAPS_MAX           2 // of an instance
#define CAPS_MINOR_LABEL   "DeviceFileMinor:"
#define IMEX_DRIVER        "nvidia-caps-imex-channels"
#define AMD_KFD            "kfd"
#define VENDOR_AMD         0x1002U
#define BLOCK_DEVICES      "Block devices:"
#define NVIDIA_MINOR_LABEL "Device Minor:"

enum vendor { VENDOR_IS_NONE, VENDOR_IS_NVIDIA, VENDOR_IS_AMD };

struct gpu_nodes {
    char *uuid;
    uint32_t index;
    int32_t minor; // as the driver's library has it
    int numa;
    enum vendor vendor;
    int64_t nvidia_major, nvidia_minor, render_minor; // -1: none
    bool is_instance;
    uint32_t gpu_instance, compute_instance;
};

/* The text of devices_file. The kernel composes it from a thousand numbers, which takes longer than all else
 * that a launch does here. */
struct drivers {
    struct buffer text;
    int64_t reread_ms, reread_at; // boot clock
};

struct gpu_devices {
    char *device_dir, *pci_dir, *nvidia_dir, *devices_file, *caps_dir;
    struct drivers *drivers;
    bool has_simulated, has_imex;
    struct gpu_nodes *gpus;
    size_t n_gpus;
};

static const struct gpu_devices_places real_places = {
    .device_dir = "/dev",
    .pci_dir = "/sys/bus/pci/devices",
    .nvidia_dir = "/proc/driver/nvidia/gpus",
    .devices_file = "/proc/devices",
    .caps_dir = "/proc/driver/nvidia/capabilities",
};

struct gpu_devices *gpu_devices_new(const struct gpu_devices_places *places)
{
    struct gpu_devices *devices = xcalloc(1, sizeof(*devices));
    places = places != NULL ? places : &real_places;
    *devices = (struct gpu_devices){
        .device_dir = xstrdup(places->device_dir != NULL ? places->device_dir : real_places.device_dir),
        .pci_dir = xstrdup(places->pci_dir != NULL ? places->pci_dir : real_places.pci_dir),
        .nvidia_dir = xstrdup(places->nvidia_dir != NULL ? places->nvidia_dir : real_places.nvidia_dir),
        .devices_file =
            xstrdup(places->devices_file != NULL ? places->devices_file : real_places.devices_file),
        .caps_dir = xstrdup(places->caps_dir != NULL ? places->caps_dir : real_places.caps_dir),
        .has_simulated = places->has_simulated,
        .has_imex = places->has_imex,
    };
    devices->drivers = xcalloc(1, sizeof(*devices->drivers));
    devices->drivers->reread_ms = places->devices_file != NULL ? places->reread_ms : DEVICES_REREAD_MS;
    return devices;
}

static void forget_gpus(struct gpu_devices *devices)
{
    for (size_t i = 0; i < devices->n_gpus; i++)
        free(devices->gpus[i].uuid);
    free(take_ptr(devices->gpus));
    devices->n_gpus = 0;
}

void gpu_devices_free(struct gpu_devices *devices)
{
    if (devices == NULL)
        return;
    forget_gpus(devices);
    buffer_clear(&devices->drivers->text);
    free(devices->drivers);
    free(devices->device_dir);
    free(devices->pci_dir);
    free(devices->nvidia_dir);
    free(devices->devices_file);
    free(devices->caps_dir);
    free(devices);
}

/* --- what belongs to a GPU --- */

/* The number after the label in a file of the driver; -1 if missing. */
static int64_t read_minor(const char *path, const char *label)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    char *end;
    if (file_read(AT_FDCWD, path, NVIDIA_PROC_MAX, &text) < 0)
        return -1;
    const char *at = strstr(buffer_text(&text), label);
    long number = at == NULL ? -1 : strtol(at + strlen(label), &end, 10);
    return at == NULL || end == at + strlen(label) || number > LAUNCH_MINOR_MAX ? -1 : number;
}

/* "Device Minor: 3" in the driver's file for the GPU at that address; -1 if missing. */
static int64_t read_nvidia_minor(const struct gpu_devices *devices, const char *pci)
{
    _cleanup_free_ char *path = xasprintf("%s/%s/information", devices->nvidia_dir, pci);
    return read_minor(path, NVIDIA_MINOR_LABEL);
}

/* The minors of an instance in /dev/nvidia-caps, -1 for one that is missing. They are read anew for each job,
 * because the driver assigns them anew for each layout. */
static void read_caps(const struct gpu_devices *devices, const struct gpu_nodes *gpu, int64_t *ret)
{
    _cleanup_free_ char *instance =
        xasprintf("%s/gpu%lld/mig/gi%u", devices->caps_dir, (long long)gpu->nvidia_minor, gpu->gpu_instance);
    _cleanup_free_ char *whole = xasprintf("%s/access", instance);
    _cleanup_free_ char *part = xasprintf("%s/ci%u/access", instance, gpu->compute_instance);
    ret[0] = read_minor(whole, CAPS_MINOR_LABEL);
    ret[1] = read_minor(part, CAPS_MINOR_LABEL);
}

static uint32_t read_pci_vendor(const struct gpu_devices *devices, const char *pci)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/%s/vendor", devices->pci_dir, pci);
    return file_read(AT_FDCWD, path, PATH_MAX, &text) < 0 ? 0
                                                          : (uint32_t)strtoul(buffer_text(&text), NULL, 16);
}

/* The number in the name of DIR/drm/renderDN. */
static int64_t read_render_minor(const struct gpu_devices *devices, const char *pci)
{
    _cleanup_free_ char *path = xasprintf("%s/%s/drm", devices->pci_dir, pci);
    DIR *dir = opendir(path);
    int64_t minor_number = -1;
    if (dir == NULL)
        return -1;
    for (const struct dirent *entry; minor_number < 0 && (entry = readdir(dir)) != NULL;)
        if (strncmp(entry->d_name, "renderD", 7) == 0 && isdigit((unsigned char)entry->d_name[7]))
            minor_number = strtol(entry->d_name + 7, NULL, 10);
    (void)closedir(dir);
    return minor_number;
}

/* The node has its own numbers; a missing one will get those documented by NVIDIA. */
static void find_nvidia_node(const struct gpu_devices *devices, int64_t n, struct gpu_nodes *gpu)
{
    struct stat node;
    _cleanup_free_ char *path = xasprintf("%s/nvidia%lld", devices->device_dir, (long long)n);
    bool is_there = stat(path, &node) == 0 && S_ISCHR(node.st_mode);
    gpu->nvidia_major = is_there ? (int64_t)major(node.st_rdev) : NVIDIA_MAJOR;
    gpu->nvidia_minor = is_there ? (int64_t)minor(node.st_rdev) : n;
}

static void find_nodes(const struct gpu_devices *devices, bool is_simulated, const struct gpu_state *state,
    struct gpu_nodes *gpu)
{
    *gpu = (struct gpu_nodes){ .uuid = xstrdup(state->uuid),
        .index = state->index,
        .minor = state->minor,
        .numa = state->numa,
        .is_instance = state->parent != NULL,
        .gpu_instance = state->gpu_instance,
        .compute_instance = state->compute_instance,
        .nvidia_major = -1,
        .nvidia_minor = -1,
        .render_minor = -1 };
    if (is_simulated) {
        if (!devices->has_simulated)
            return;
        gpu->vendor = VENDOR_IS_NVIDIA;
        find_nvidia_node(devices, state->index, gpu);
        return;
    }
    const char *pci = state->pci != NULL ? state->pci : "";
    gpu->vendor = read_pci_vendor(devices, pci) == VENDOR_AMD ? VENDOR_IS_AMD : VENDOR_IS_NVIDIA;
    gpu->render_minor = read_render_minor(devices, pci);
    if (gpu->vendor == VENDOR_IS_AMD)
        return;
    int64_t n = read_nvidia_minor(devices, pci);
    find_nvidia_node(devices, n >= 0 ? n : state->minor >= 0 ? state->minor : (int64_t)state->index, gpu);
}

static bool is_same(const struct gpu_devices *devices, const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    if (gpus->count != devices->n_gpus)
        return false;
    for (size_t i = 0; i < gpus->count; i++)
        if (states[i].index != devices->gpus[i].index || states[i].minor != devices->gpus[i].minor ||
            states[i].gpu_instance != devices->gpus[i].gpu_instance ||
            states[i].compute_instance != devices->gpus[i].compute_instance ||
            !text_equal(states[i].uuid, devices->gpus[i].uuid))
            return false;
    return true;
}

void gpu_devices_update(struct gpu_devices *devices, const char *backend, const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    if (is_same(devices, gpus))
        return;
    forget_gpus(devices);
    devices->gpus = xcalloc(gpus->count + 1, sizeof(*devices->gpus));
    devices->n_gpus = gpus->count;
    for (size_t i = 0; i < gpus->count; i++)
        find_nodes(devices, strcmp(backend, "sim") == 0, &states[i], &devices->gpus[i]);
}

static const struct gpu_nodes *find(const struct gpu_devices *devices, const struct gpu_grant *grant)
{
    for (size_t i = 0; i < devices->n_gpus; i++)
        if (text_equal(devices->gpus[i].uuid, grant->uuid))
            return &devices->gpus[i];
    return NULL;
}

uint64_t gpu_devices_numas(const struct gpu_devices *devices, const struct record_list *grants)
{
    uint64_t numas = 0;
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu != NULL && gpu->numa >= 0 && gpu->numa < NUMAS_MAX)
            numas |= UINT64_C(1) << gpu->numa;
    }
    return numas;
}

static size_t count_before(const struct record_list *grants, uint32_t index)
{
    const struct gpu_grant *items = grants->items;
    size_t count = 0;
    for (size_t i = 0; i < grants->count; i++)
        count += items[i].index < index;
    return count;
}

/* CUDA does not number instances. */
static bool has_instance(const struct gpu_devices *devices, const struct record_list *grants)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu != NULL && gpu->is_instance)
            return true;
    }
    return false;
}

char *gpu_devices_visible(const struct gpu_devices *devices, const struct record_list *grants)
{
    const struct gpu_grant *items = grants->items;
    bool is_by_uuid = has_instance(devices, grants);
    _cleanup_buffer_ struct buffer text = { 0 };
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, &items[i]);
        if (gpu == NULL || gpu->vendor != VENDOR_IS_NVIDIA)
            return NULL;
        if (is_by_uuid)
            buffer_printf(&text, "%s%s", i > 0 ? "," : "", gpu->uuid);
        else
            buffer_printf(&text, "%s%zu", i > 0 ? "," : "", count_before(grants, items[i].index));
    }
    return grants->count > 0 ? buffer_take(&text) : NULL;
}

bool gpu_devices_has_nodes(const struct gpu_devices *devices, const struct record_list *grants)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu == NULL || gpu->vendor != VENDOR_IS_NVIDIA)
            return false;
        _cleanup_free_ char *path =
            xasprintf("%s/nvidia%lld", devices->device_dir, (long long)gpu->nvidia_minor);
        if (access(path, F_OK) < 0)
            return false;
    }
    return true;
}

/* --- rules --- */

static void add(struct record_list *rules, int64_t major_number, int64_t first, int64_t last, bool is_allowed)
{
    if (rules->count == LAUNCH_DEVICES_MAX || major_number < 0 || first < 0)
        return;
    rules->items = xreallocarray(rules->items, rules->count + 1, sizeof(struct device_rule));
    ((struct device_rule *)rules->items)[rules->count++] =
        (struct device_rule){ (uint32_t)major_number, (uint32_t)first, (uint32_t)last, is_allowed };
}

static bool is_shared_driver(const struct gpu_devices *devices, const char *name)
{
    static const char *const names[] = { "nvidia-uvm", "nvidia-fs" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return devices->has_imex && strcmp(name, IMEX_DRIVER) == 0;
}

/* The capabilities of the granted instances, before the rule that denies all of them. */
static void add_caps(const struct gpu_devices *devices, const struct record_list *grants,
    int64_t major_number, struct record_list *rules)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        int64_t minors[CAPS_MAX];
        if (gpu == NULL || !gpu->is_instance)
            continue;
        read_caps(devices, gpu, minors);
        for (size_t k = 0; k < CAPS_MAX; k++)
            add(rules, major_number, minors[k], minors[k], true);
    }
}

/* A row of /proc/devices: "235 nvidia-uvm". */
static void add_driver(const struct gpu_devices *devices, const struct record_list *grants,
    struct record_list *rules, int64_t major_number, const char *name, bool has_nvidia, bool has_amd)
{
    if (strcmp(name, CAPS_DRIVER) == 0)
        add_caps(devices, grants, major_number, rules);
    bool is_nvidia = strncmp(name, NVIDIA_NAME, strlen(NVIDIA_NAME)) == 0 && major_number != NVIDIA_MAJOR;
    if (is_nvidia)
        add(rules, major_number, 0, LAUNCH_MINOR_MAX, has_nvidia && is_shared_driver(devices, name));
    else if (strcmp(name, AMD_KFD) == 0)
        add(rules, major_number, 0, LAUNCH_MINOR_MAX, has_amd);
}

/* A copy; NULL: it cannot be read. A module may have been loaded since the last time. */
static char *read_drivers(const struct gpu_devices *devices)
{
    struct drivers *drivers = devices->drivers;
    int64_t now_ms = clock_boot_ms();
    if (now_ms >= drivers->reread_at) {
        buffer_clear(&drivers->text);
        if (file_read(AT_FDCWD, devices->devices_file, PROC_DEVICES_MAX, &drivers->text) < 0)
            return NULL;
        drivers->reread_at = now_ms + drivers->reread_ms;
    }
    return xstrdup(buffer_text(&drivers->text));
}

/* Drivers with dynamic major numbers. */
static void add_drivers(const struct gpu_devices *devices, const struct record_list *grants,
    struct record_list *rules, bool has_nvidia, bool has_amd)
{
    _cleanup_free_ char *text = read_drivers(devices);
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        char *name;
        if (strcmp(line, BLOCK_DEVICES) == 0)
            break;
        long major_number = strtol(line, &name, 10);
        if (name != line && *name == ' ')
            add_driver(devices, grants, rules, major_number, name + 1, has_nvidia, has_amd);
    }
}

void gpu_devices_rules(
    const struct gpu_devices *devices, const struct record_list *grants, struct record_list *ret)
{
    struct record_list rules = { 0 };
    bool has_nvidia = false, has_amd = false;
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu == NULL)
            continue;
        add(&rules, gpu->nvidia_major, gpu->nvidia_minor, gpu->nvidia_minor, true);
        add(&rules, DRM_MAJOR, gpu->render_minor, gpu->render_minor, true);
        has_nvidia |= gpu->vendor == VENDOR_IS_NVIDIA;
        has_amd |= gpu->vendor == VENDOR_IS_AMD;
    }
    add(&rules, NVIDIA_MAJOR, NVIDIA_MODESET, NVIDIA_CTL, has_nvidia);
    add(&rules, NVIDIA_MAJOR, 0, LAUNCH_MINOR_MAX, false);
    add(&rules, DRM_MAJOR, 0, LAUNCH_MINOR_MAX, false);
    add_drivers(devices, grants, &rules, has_nvidia, has_amd);
    *ret = rules;
}

/* --- paths --- */

static void add_path(const struct gpu_devices *devices, const char *name, struct strings *ret)
{
    strings_take(ret, xasprintf("%s/%s", devices->device_dir, name));
}

static void add_caps_paths(
    const struct gpu_devices *devices, const struct gpu_nodes *gpu, struct strings *ret)
{
    int64_t minors[CAPS_MAX];
    read_caps(devices, gpu, minors);
    for (size_t k = 0; k < CAPS_MAX; k++)
        if (minors[k] >= 0)
            strings_take(
                ret, xasprintf("%s/nvidia-caps/nvidia-cap%lld", devices->device_dir, (long long)minors[k]));
}

void gpu_devices_paths(
    const struct gpu_devices *devices, const struct record_list *grants, struct strings *ret)
{
    static const char *const shared[] = { "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset" };
    bool has_nvidia = false, has_amd = false;
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu == NULL || gpu->vendor == VENDOR_IS_NONE)
            continue;
        bool is_amd = gpu->vendor == VENDOR_IS_AMD;
        int64_t number = is_amd ? gpu->render_minor : gpu->nvidia_minor;
        if (number >= 0)
            strings_take(ret, xasprintf("%s/%s%lld", devices->device_dir, is_amd ? "dri/renderD" : "nvidia",
                                  (long long)number));
        if (gpu->is_instance)
            add_caps_paths(devices, gpu, ret);
        has_nvidia |= !is_amd;
        has_amd |= is_amd;
    }
    for (size_t i = 0; has_nvidia && i < sizeof(shared) / sizeof(shared[0]); i++)
        add_path(devices, shared[i], ret);
    if (has_nvidia && devices->has_imex)
        add_path(devices, IMEX_DRIVER "/channel0", ret);
    if (has_amd)
        add_path(devices, AMD_KFD, ret);
}
