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
