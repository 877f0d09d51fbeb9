/* SPDX-License-Identifier: MIT */
/* Where a GPU sits in its machine, from sysfs. */
#pragma once

#include <stddef.h>

#include "wire/message.h"

/*
 * Fills numa and pcie_switch of all GPUs by their `pci` addresses: GPUs below the same switch get the same
 * number, -1 is "not known". `sysfs` is "/sys" (tests give another).
 */
void gpu_place_find(const char *sysfs, struct gpu_state *gpus, size_t count);
