/* SPDX-License-Identifier: MIT */
/*
 * The nodes of each vendor's GPUs are in its row (base/gpu_vendor.h).
 *
 * NVIDIA: /dev/nvidiaN has major 195, and N is the driver's "Device Minor", which need not be the index in
 * PCI order. Every user of a GPU also needs nvidiactl and nvidia-uvm, and nvidia-fs to read files directly
 * into its memory. A MIG instance is used through the node of its GPU and two of /dev/nvidia-caps, for the
 * GPU instance and the compute instance; their minors are in the driver's files. The driver's other devices
 * (capabilities, fabric) are for administration or other GPUs and are denied. IMEX channels, which NVLink
 * between nodes needs, are denied too unless the site allows them. AMD: /dev/kfd is shared by all GPUs,
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
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "base/strings.h"
#include "job/event.h"
#include "wire/message.h"

#define NUMAS_MAX        64 // in a set
#define PROC_DEVICES_MAX 65536U
#define DRIVER_FILE_MAX  8192U
#define CAPS_MAX         2 // of an instance
#define CAPS_MINOR_LABEL "DeviceFileMinor:"
#define BLOCK_DEVICES    "Block devices:"

struct gpu_nodes {
    char *uuid;
    uint32_t index;
    int32_t minor; // as reported by the driver's library
    int numa;
    const struct gpu_vendor *vendor;            // NULL: no nodes
    int64_t own_major, own_minor, render_minor; // -1: none
    bool is_instance;
    uint32_t gpu_instance, compute_instance;
};

/* The text of devices_file. The kernel composes it from a thousand numbers, which takes longer than
 * everything else a launch does here. */
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

/* The number after the label in a file of the driver; -1 if it is missing. */
static int64_t read_minor(const char *path, const char *label)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    char *end;
    if (file_read(AT_FDCWD, path, DRIVER_FILE_MAX, &text) < 0)
        return -1;
    const char *at = strstr(buffer_text(&text), label);
    long number = at == NULL ? -1 : strtol(at + strlen(label), &end, 10);
    return at == NULL || end == at + strlen(label) || number > LAUNCH_MINOR_MAX ? -1 : number;
}

/* "Device Minor: 3" in the driver's file for the GPU at that address; else the minor reported by its library;
 * else its index. */
static int64_t find_minor(
    const struct gpu_devices *devices, const struct gpu_vendor *vendor, const struct gpu_state *state)
{
    _cleanup_free_ char *path =
        xasprintf("%s/%s/information", devices->nvidia_dir, state->pci != NULL ? state->pci : "");
    int64_t minor_number = vendor->minor_label != NULL ? read_minor(path, vendor->minor_label) : -1;
    return minor_number >= 0 ? minor_number : state->minor >= 0 ? state->minor : (int64_t)state->index;
}

/* The minors of an instance in /dev/nvidia-caps; -1 for a missing one. They are read again for each job,
 * because the driver reassigns them for each layout. */
static void read_caps(const struct gpu_devices *devices, const struct gpu_nodes *gpu, int64_t *ret)
{
    _cleanup_free_ char *instance =
        xasprintf("%s/gpu%lld/mig/gi%u", devices->caps_dir, (long long)gpu->own_minor, gpu->gpu_instance);
    _cleanup_free_ char *whole = xasprintf("%s/access", instance);
    _cleanup_free_ char *part = xasprintf("%s/ci%u/access", instance, gpu->compute_instance);
    ret[0] = read_minor(whole, CAPS_MINOR_LABEL);
    ret[1] = read_minor(part, CAPS_MINOR_LABEL);
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

/* The node has its own numbers; a missing node will get those that its vendor documents. */
static void find_own_node(const struct gpu_devices *devices, int64_t n, struct gpu_nodes *gpu)
{
    struct stat node;
    _cleanup_free_ char *path = xasprintf("%s/%s%lld", devices->device_dir, gpu->vendor->node, (long long)n);
    bool is_there = stat(path, &node) == 0 && S_ISCHR(node.st_mode);
    bool is_documented = gpu->vendor->node_major != 0;
    gpu->own_major = is_there        ? (int64_t)major(node.st_rdev)
                     : is_documented ? (int64_t)gpu->vendor->node_major
                                     : -1;
    gpu->own_minor = is_there ? (int64_t)minor(node.st_rdev) : n;
}

static void find_nodes(
    const struct gpu_devices *devices, const struct gpu_state *state, struct gpu_nodes *gpu)
{
    const struct gpu_vendor *vendor = gpu_vendor_of(state->vendor);
    *gpu = (struct gpu_nodes){ .uuid = xstrdup(state->uuid),
        .index = state->index,
        .minor = state->minor,
        .numa = state->numa,
        .is_instance = state->parent != NULL,
        .gpu_instance = state->gpu_instance,
        .compute_instance = state->compute_instance,
        .own_major = -1,
        .own_minor = -1,
        .render_minor = -1 };
    if (vendor->is_made_up && !devices->has_simulated)
        return;
    gpu->vendor = gpu_vendor_seen(state->vendor);
    if (!vendor->is_made_up)
        gpu->render_minor = read_render_minor(devices, state->pci != NULL ? state->pci : "");
    if (gpu->vendor->node != NULL)
        find_own_node(devices,
            vendor->is_made_up ? (int64_t)state->index : find_minor(devices, gpu->vendor, state), gpu);
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

void gpu_devices_update(struct gpu_devices *devices, const struct record_list *gpus)
{
    const struct gpu_state *states = gpus->items;
    if (is_same(devices, gpus))
        return;
    forget_gpus(devices);
    devices->gpus = xcalloc(gpus->count + 1, sizeof(*devices->gpus));
    devices->n_gpus = gpus->count;
    for (size_t i = 0; i < gpus->count; i++)
        find_nodes(devices, &states[i], &devices->gpus[i]);
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

/* True if a MIG instance is among them: CUDA does not number instances. */
static bool has_instance(const struct gpu_devices *devices, const struct record_list *grants)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu != NULL && gpu->is_instance)
            return true;
    }
    return false;
}

const struct gpu_vendor *gpu_devices_vendor(
    const struct gpu_devices *devices, const struct record_list *grants)
{
    const struct gpu_vendor *vendor = NULL;
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu == NULL || gpu->vendor == NULL || (vendor != NULL && vendor != gpu->vendor))
            return NULL;
        vendor = gpu->vendor;
    }
    return vendor;
}

char *gpu_devices_visible(const struct gpu_devices *devices, const struct record_list *grants)
{
    const struct gpu_grant *items = grants->items;
    const struct gpu_vendor *vendor = gpu_devices_vendor(devices, grants);
    bool is_by_uuid = has_instance(devices, grants);
    _cleanup_buffer_ struct buffer text = { 0 };
    if (vendor == NULL || vendor->variables[0].kind != GPU_VARIABLE_NUMBERS)
        return NULL;
    for (size_t i = 0; i < grants->count; i++) {
        if (is_by_uuid)
            buffer_printf(&text, "%s%s", i > 0 ? "," : "", items[i].uuid);
        else
            buffer_printf(&text, "%s%zu", i > 0 ? "," : "", count_before(grants, items[i].index));
    }
    return buffer_take(&text);
}

static char *node_path(const struct gpu_devices *devices, const struct gpu_nodes *gpu)
{
    const char *name = gpu->vendor->node != NULL ? gpu->vendor->node : GPU_RENDER_NODE;
    int64_t number = gpu->vendor->node != NULL ? gpu->own_minor : gpu->render_minor;
    return number < 0 ? NULL : xasprintf("%s/%s%lld", devices->device_dir, name, (long long)number);
}

bool gpu_devices_has_nodes(const struct gpu_devices *devices, const struct record_list *grants)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        _cleanup_free_ char *path = gpu != NULL && gpu->vendor != NULL ? node_path(devices, gpu) : NULL;
        if (path == NULL || access(path, F_OK) < 0)
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

static bool is_shared_driver(
    const struct gpu_devices *devices, const struct gpu_vendor *vendor, const char *name)
{
    return gpu_vendor_names(vendor->shared_drivers, name) ||
           (devices->has_imex && text_equal(vendor->channel_driver, name));
}

/* Adds the capabilities of the granted instances before the rule that denies all. */
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

static bool has_vendor(
    const struct gpu_devices *devices, const struct record_list *grants, const struct gpu_vendor *vendor)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu != NULL && gpu->vendor == vendor)
            return true;
    }
    return false;
}

/* A row of /proc/devices, "235 nvidia-uvm", if it is of that vendor. */
static void add_driver(const struct gpu_devices *devices, const struct record_list *grants,
    const struct gpu_vendor *vendor, int64_t major_number, const char *name, struct record_list *rules)
{
    bool is_granted = has_vendor(devices, grants, vendor);
    bool is_own = vendor->drivers != NULL && strncmp(name, vendor->drivers, strlen(vendor->drivers)) == 0;
    if (!is_own || major_number == (int64_t)vendor->node_major)
        return;
    if (text_equal(vendor->instance_driver, name))
        add_caps(devices, grants, major_number, rules);
    add(rules, major_number, 0, LAUNCH_MINOR_MAX, is_granted && is_shared_driver(devices, vendor, name));
}

/* A copy of the text; NULL if it cannot be read. A module may have been loaded since the last read. */
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

/* Adds drivers with dynamic major numbers. */
static void add_drivers(
    const struct gpu_devices *devices, const struct record_list *grants, struct record_list *rules)
{
    _cleanup_free_ char *text = read_drivers(devices);
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        char *name;
        if (strcmp(line, BLOCK_DEVICES) == 0)
            break;
        long major_number = strtol(line, &name, 10);
        for (size_t i = 0; name != line && *name == ' ' && i < gpu_vendors_count; i++)
            add_driver(devices, grants, &gpu_vendors[i], major_number, name + 1, rules);
    }
}

/* Adds nodes whose major number is documented: the control nodes, and all nodes of other GPUs. */
static void add_majors(
    const struct gpu_devices *devices, const struct record_list *grants, struct record_list *rules)
{
    for (size_t i = 0; i < gpu_vendors_count; i++) {
        const struct gpu_vendor *vendor = &gpu_vendors[i];
        if (vendor->node_major == 0)
            continue;
        if (vendor->control_last > 0)
            add(rules, vendor->node_major, vendor->control_first, vendor->control_last,
                has_vendor(devices, grants, vendor));
        add(rules, vendor->node_major, 0, LAUNCH_MINOR_MAX, false);
    }
    add(rules, GPU_RENDER_MAJOR, 0, LAUNCH_MINOR_MAX, false);
}

void gpu_devices_rules(
    const struct gpu_devices *devices, const struct record_list *grants, struct record_list *ret)
{
    struct record_list rules = { 0 };
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu == NULL)
            continue;
        add(&rules, gpu->own_major, gpu->own_minor, gpu->own_minor, true);
        add(&rules, GPU_RENDER_MAJOR, gpu->render_minor, gpu->render_minor, true);
    }
    add_majors(devices, grants, &rules);
    add_drivers(devices, grants, &rules);
    *ret = rules;
}

/* --- paths --- */

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

static void add_control_paths(
    const struct gpu_devices *devices, const struct gpu_vendor *vendor, struct strings *ret)
{
    for (const char *const *name = vendor->control; *name != NULL; name++)
        strings_take(ret, xasprintf("%s/%s", devices->device_dir, *name));
    if (devices->has_imex && vendor->channel != NULL)
        strings_take(ret, xasprintf("%s/%s", devices->device_dir, vendor->channel));
}

void gpu_devices_paths(
    const struct gpu_devices *devices, const struct record_list *grants, struct strings *ret)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_nodes *gpu = find(devices, (const struct gpu_grant *)grants->items + i);
        if (gpu == NULL || gpu->vendor == NULL)
            continue;
        char *path = node_path(devices, gpu);
        if (path != NULL)
            strings_take(ret, path);
        if (gpu->is_instance)
            add_caps_paths(devices, gpu, ret);
    }
    for (size_t i = 0; i < gpu_vendors_count; i++)
        if (has_vendor(devices, grants, &gpu_vendors[i]))
            add_control_paths(devices, &gpu_vendors[i], ret);
}
