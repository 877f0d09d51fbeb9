/* SPDX-License-Identifier: MIT */
/*
 * Finds the device nodes of each GPU and derives the device rules of a job: of all GPU nodes, it may open
 * those of its own GPUs and the control nodes they need. A GPU without known nodes adds no rule.
 */
#pragma once

#include "base/gpu_vendor.h"
#include "base/record.h"
#include "base/strings.h"
#include "job/launch.h"

/* Paths for the lookups; tests use their own directories. */
struct gpu_devices_places {
    const char *device_dir;   // directory of nodes such as nvidia0; "/dev"
    const char *pci_dir;      // "/sys/bus/pci/devices"
    const char *nvidia_dir;   // "/proc/driver/nvidia/gpus"
    const char *devices_file; // "/proc/devices"
    bool has_simulated;       // nvidiaN in device_dir is simulated GPU N
    bool has_imex;            // jobs with GPUs may open the IMEX channels
    const char *caps_dir;     // of the capabilities of MIG instances; "/proc/driver/nvidia/capabilities"
    int64_t reread_ms;        // devices_file is read again after this time; of the real one DEVICES_REREAD_MS
};

#define DEVICES_REREAD_MS 1000

struct gpu_devices;

/* NULL: the paths of a real machine. The strings are copied. */
struct gpu_devices *gpu_devices_new(const struct gpu_devices_places *places);
void gpu_devices_free(struct gpu_devices *devices);

/* Sets the node's GPUs (struct gpu_state); looks up nodes only if the GPUs have changed. */
void gpu_devices_update(struct gpu_devices *devices, const struct record_list *gpus);

/* The rules (struct device_rule) for a job with these grants (struct gpu_grant); the caller frees the
 * items. */
void gpu_devices_rules(
    const struct gpu_devices *devices, const struct record_list *grants, struct record_list *ret);

/* Appends the paths of the nodes that a job with these grants needs, whether they exist or not: those of its
 * GPUs, and the control nodes. */
void gpu_devices_paths(
    const struct gpu_devices *devices, const struct record_list *grants, struct strings *ret);

/* The vendor of the nodes of all grants; NULL: there are no grants, or some have no nodes. */
const struct gpu_vendor *gpu_devices_vendor(
    const struct gpu_devices *devices, const struct record_list *grants);

/* The vendor's list of GPUs for a job that can open no other GPUs: the driver hides those and numbers the
 * remaining ones from 0 in PCI order. "1,0" in the order of the grants, UUIDs if a MIG instance is among
 * them; the caller frees it. NULL if they have no nodes, so that nothing is
 * hidden, or the vendor has no list of numbers. */
char *gpu_devices_visible(const struct gpu_devices *devices, const struct record_list *grants);

/* True if each of them has a node that exists, so that denying the others hides them. Not the
 * case where GPUs are accessed in another way, as in WSL. */
bool gpu_devices_has_nodes(const struct gpu_devices *devices, const struct record_list *grants);

/* The NUMA nodes of the grants: bit k is node k. 0: not known. */
uint64_t gpu_devices_numas(const struct gpu_devices *devices, const struct record_list *grants);
