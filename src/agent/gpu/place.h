/* SPDX-License-Identifier: MIT */
/* The topology of GPUs in their machine, from sysfs. */
#pragma once

#include <stddef.h>

#include "wire/message.h"

/*
 * Sets numa and pcie_switch of all GPUs from their `pci` addresses: GPUs below the same switch get the same
 * number, -1 means unknown. `sysfs` is "/sys" (tests use another).
 */
void gpu_place_find(const char *sysfs, struct gpu_state *gpus, size_t count);

/* Lists the network interfaces that belong to PCI devices (struct node_nic), by name; their pcie_switch is
 * that of GPUs below the same switch. gpu_place_clear_nics() frees the list. */
void gpu_place_nics(const char *sysfs, const struct gpu_state *gpus, size_t count, struct record_list *ret);
void gpu_place_clear_nics(struct record_list *nics);
