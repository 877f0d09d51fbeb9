/* SPDX-License-Identifier: MIT */
/* What the kernel's compute driver for AMD GPUs (amdkfd) tells in sysfs: which GPUs can compute, how they are
 * linked, and who uses them. */
#pragma once

#include "base/record.h"
#include "wire/message.h"

struct amd_node {
    unsigned int number; // of its folder
    uint64_t gpu_id;     // names it in the folders of processes; never 0
    char pci[32];
    unsigned int links[NODE_GPUS_MAX]; // numbers of the nodes that XGMI leads to
    size_t n_links;
};

/* The GPUs among the nodes; the caller frees it. NULL and *ret_count 0 when there are none. */
struct amd_node *amd_kfd_nodes(const char *sysfs, size_t *ret_count);

/* Replaces gpu->processes by those with memory on that GPU, the largest first, and sets GPU_PROCESSES. */
void amd_kfd_processes(const char *sysfs, uint64_t gpu_id, struct gpu_state *gpu);
