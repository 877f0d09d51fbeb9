/* SPDX-License-Identifier: MIT */
/*
 * Which device nodes belong to which GPU, and from that the rules of a job that was given some of them: of
 * all GPU nodes it may open those of its own GPUs and what these cannot do without. A GPU of which no node is
 * known gives nothing.
 */
#pragma once

#include "base/record.h"
#include "base/strings.h"
#include "job/launch.h"

/* Where things are looked up; for tests these are directories of their own. */
struct gpu_devices_places {
    const char *device_dir;   // nodes such as nvidia0; "/dev"
    const char *pci_dir;      // "/sys/bus/pci/devices"
    const char *nvidia_dir;   // "/proc/driver/nvidia/gpus"
    const char *devices_file; // "/proc/devices"
    bool has_simulated;       // nvidiaN in device_dir stands for simulated GPU N
    bool has_imex;            // jobs with GPUs may open the IMEX channels
};

struct gpu_devices;

/* NULL stands for the places of a real machine. The strings are copied. */
struct gpu_devices *gpu_devices_new(const struct gpu_devices_places *places);
void gpu_devices_free(struct gpu_devices *devices);

/* The node's GPUs (struct gpu_state) as the backend of that name reports them; looks things up only when the
 * GPUs are others than before. */
void gpu_devices_update(struct gpu_devices *devices, const char *backend, const struct record_list *gpus);

/* The rules (struct device_rule) for a job with these grants (struct gpu_grant); the caller frees the items.
 */
void gpu_devices_rules(
    const struct gpu_devices *devices, const struct record_list *grants, struct record_list *ret);

/* Appends the paths of the nodes that a job with these grants needs, whether they are there or not: of its
 * GPUs, and those that they cannot do without. */
void gpu_devices_paths(
    const struct gpu_devices *devices, const struct record_list *grants, struct strings *ret);

/* What CUDA_VISIBLE_DEVICES is for a job that can open no other GPUs: the driver hides them from it and
 * numbers those that are left from 0 on, in PCI order. "1,0" in the order of the grants; the caller frees it.
 * NULL when they have no nodes, so that nothing is hidden. */
char *gpu_devices_visible(const struct gpu_devices *devices, const struct record_list *grants);

/* Each of them is an NVIDIA GPU that has a node of its own: closing the others hides them. Not so where they
 * are reached in another way, as in WSL. */
bool gpu_devices_has_nodes(const struct gpu_devices *devices, const struct record_list *grants);

/* NUMA node of the first of the grants, -1 when it is not known. */
int gpu_devices_numa(const struct gpu_devices *devices, const struct record_list *grants);
