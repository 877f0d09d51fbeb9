/* SPDX-License-Identifier: MIT */
/* Information of AMD's compute driver (amdkfd) in sysfs: which GPUs can compute, their links, and their
 * users. */
#pragma once

#include "base/record.h"
#include "wire/message.h"

struct amd_node {
    unsigned int number; // of its directory
    uint64_t gpu_id;     // identifies it in the directories of processes; never 0
    char pci[32];
    unsigned int links[NODE_GPUS_MAX]; // node numbers of its XGMI peers
    size_t n_links;
};

/* The nodes that are GPUs; the caller frees it. NULL and *ret_count 0 if there are none. */
struct amd_node *amd_kfd_nodes(const char *sysfs, size_t *ret_count);

/* Replaces gpu->processes by the processes with memory on that GPU, largest first, and sets GPU_PROCESSES. */
void amd_kfd_processes(const char *sysfs, uint64_t gpu_id, struct gpu_state *gpu);
