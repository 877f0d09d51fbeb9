/* SPDX-License-Identifier: MIT */
/*
 * Values of AMD GPUs that sysfs lacks, from ROCm's library if installed: energy, memory errors, power limit,
 * clocks.
 */
#pragma once

#include <stddef.h>

#include "wire/message.h"

struct rocm;

/* Starts reading the GPUs at these PCI addresses. `library` NULL: ROCm's default path. Waits at most two
 * seconds for the first values. Without the library there are none, see rocm_remark(). NULL if no process can
 * be started. */
struct rocm *rocm_start(const char *library, const char *const *addresses, size_t count);

/* Adds values for the GPU at position `i` that sysfs did not provide, with their bits in `valid`. A value
 * once provided by sysfs is never taken from the library, because their counters have different origins. NULL
 * is allowed. */
void rocm_fill(struct rocm *rocm, size_t i, struct gpu_state *gpu);

/* Why the library is not used; "" if it is. NULL is allowed. */
void rocm_remark(struct rocm *rocm, char *text, size_t size);

/* Ends the process. NULL is allowed. */
void rocm_stop(struct rocm *rocm);
