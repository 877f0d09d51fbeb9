/* SPDX-License-Identifier: MIT */
/*
 * A vendor of GPUs is a row of this table and a backend, `gpu_WORD` in agent/gpu/WORD.c, which queries its
 * driver. Everything else that depends on the vendor is in the row: device nodes, variables of jobs,
 * arguments of containers, and the driver's abilities. Simulated GPUs have a row, too. A node has GPUs of one
 * vendor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPU_VENDOR_NAMES_MAX     6
#define GPU_VENDOR_VARIABLES_MAX 4

enum gpu_variable_kind {
    /* "0,2": the driver's indexes in PCI order; from 0 if the job can open no others; UUIDs where the driver
     * counts different GPUs than mgpu. */
    GPU_VARIABLE_NUMBERS,
    /* UUIDs; for a GPU without one, its position among the render nodes that the job can open.
     */
    GPU_VARIABLE_UUIDS,
    GPU_VARIABLE_PLACES, // "0,1": one number for each GPU of the job
    GPU_VARIABLE_FIXED,  // `text`
};

struct gpu_variable {
    const char *name; // NULL ends a list
    enum gpu_variable_kind kind;
    const char *text;
};

/* Lists end with NULL; a member missing from a row means that the vendor has no such thing. */
struct gpu_vendor {
    uint32_t number;     // in records; never used again for another
    const char *backend; // "nvml": the word of --gpus, and in HELLO
    const char *name;    // "NVIDIA"
    const char *monitor; // the vendor's program that shows its GPUs
    bool is_made_up;     // simulated: no driver, no nodes
    uint32_t stands_for; // the vendor whose variables, and nodes if any, jobs get; 0: itself

    /* Device nodes: paths below /dev. */
    uint32_t pci_vendor;                       // of render nodes that are its GPUs
    const char *node;                          // of each GPU, its number follows; NULL: the render node
    const char *minor_label;                   // of that number in the driver's file for the GPU
    uint32_t node_major;                       // major number of these nodes; 0: dynamic
    uint32_t control_first, control_last;      // minors of node_major that all its users share
    const char *control[GPU_VENDOR_NAMES_MAX]; // nodes that all its users need, for containers
    const char *locked[GPU_VENDOR_NAMES_MAX];  // the minors closed by `mgpu gpu lock`
    const char *drivers;                       // prefix of its drivers' names in /proc/devices
    const char *shared_drivers[GPU_VENDOR_NAMES_MAX]; // the drivers that all its users need
    const char *instance_driver;                      // of the capabilities of MIG instances
    const char *channel_driver, *channel;             // of NVLink between nodes, and its node

    struct gpu_variable variables[GPU_VENDOR_VARIABLES_MAX]; // the first one lists the GPUs
    const char *cdi;                                         // kind of its devices for podman
    const char *apptainer;                                   // option of apptainer

    bool reports_errors; // the driver's errors (Xid) say which GPU failed
    bool can_park, can_share_by_mps;
    bool can_be_tested; // by mgpu-gpu-test, which can also overwrite its memory
};

/* GPU_VENDOR_NVIDIA, its number, the word of its backend, the rest of its row. `--gpus auto` looks for them
 * in this order. */
#define GPU_VENDORS_REAL(VENDOR)                                                                             \
    VENDOR(NVIDIA, 1, nvml, .name = "NVIDIA", .monitor = "nvidia-smi", .pci_vendor = 0x10deU,                \
        .node = "nvidia", .minor_label = "Device Minor:", .node_major = 195, .control_first = 254,           \
        .control_last = 255, .control = { "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset" }, \
        .locked = { "nvidiactl", "nvidia-modeset" }, .drivers = "nvidia",                                    \
        .shared_drivers = { "nvidia-uvm", "nvidia-fs" }, .instance_driver = "nvidia-caps",                   \
        .channel_driver = "nvidia-caps-imex-channels", .channel = "nvidia-caps-imex-channels/channel0",      \
        .variables = { { "CUDA_VISIBLE_DEVICES", GPU_VARIABLE_NUMBERS, NULL },                               \
            { "CUDA_DEVICE_ORDER", GPU_VARIABLE_FIXED, "PCI_BUS_ID" } },                                     \
        .cdi = "nvidia.com/gpu", .apptainer = "--nv", .reports_errors = true, .can_park = true,              \
        .can_share_by_mps = true, .can_be_tested = true)                                                     \
    VENDOR(AMD, 2, amd, .name = "AMD", .monitor = "rocm-smi", .pci_vendor = 0x1002U, .control = { "kfd" },   \
        .locked = { "kfd" }, .drivers = "kfd", .shared_drivers = { "kfd" },                                  \
        .variables = { { "ROCR_VISIBLE_DEVICES", GPU_VARIABLE_UUIDS, NULL },                                 \
            { "HIP_VISIBLE_DEVICES", GPU_VARIABLE_PLACES, NULL } },                                          \
        .apptainer = "--rocm")

#define GPU_VENDORS(VENDOR)                                                                                  \
    VENDOR(SIMULATED, 0, sim, .name = "simulated", .is_made_up = true, .stands_for = GPU_VENDOR_NVIDIA)      \
    GPU_VENDORS_REAL(VENDOR)

#define GPU_VENDOR_NUMBER(id, number, ...) GPU_VENDOR_##id = (number),
enum gpu_vendor_number { GPU_VENDORS(GPU_VENDOR_NUMBER) };

/* "nvml, amd, ": for sentences about --gpus. */
#define GPU_VENDOR_WORD(id, number, word, ...) #word ", "
#define GPU_VENDOR_WORDS                       GPU_VENDORS_REAL(GPU_VENDOR_WORD)

#define GPU_RENDER_NODE  "dri/renderD" // its number follows; of all vendors
#define GPU_RENDER_MAJOR 226U

/* All of them, the simulated one first. */
extern const struct gpu_vendor gpu_vendors[];
extern const size_t gpu_vendors_count;

/* The row with that number; that of simulated GPUs if no row has it. */
const struct gpu_vendor *gpu_vendor_of(uint32_t number);

/* The row whose variables and nodes such GPUs have: itself, but for simulated ones. */
const struct gpu_vendor *gpu_vendor_seen(uint32_t number);

/* The row whose GPUs that backend finds; NULL: none has that word. */
const struct gpu_vendor *gpu_vendor_by_backend(const char *backend);

/* True if `name` is in the list, which may be one of a row. */
bool gpu_vendor_names(const char *const *list, const char *name);

/* True for any variable of a row; the second only for those that select a job's GPUs for a library. */
bool gpu_vendor_has_variable(const char *name);
bool gpu_vendor_lists(const char *name);

/* True if the name begins as the variables of a vendor do: with CUDA_, ROCR_ or HIP_. */
bool gpu_vendor_has_prefix(const char *name);
