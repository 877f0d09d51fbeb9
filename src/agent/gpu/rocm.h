/* SPDX-License-Identifier: MIT */
/*
 * What sysfs does not tell of AMD GPUs, through ROCm's library where that is installed: energy, memory
 * errors, power limit, clocks.
 */
#pragma once

#include <stddef.h>

#include "wire/message.h"

struct rocm;

/* Starts to read the GPUs at these PCI addresses. `library` NULL: where ROCm puts it. Waits for the first
 * values, two seconds at most. Without the library there are none, see rocm_remark(). NULL when no process
 * can be started. */
struct rocm *rocm_start(const char *library, const char *const *addresses, size_t count);

/* Adds to what sysfs told of the GPU at position `i` what it did not, with its bits in `valid`. What sysfs
 * told once is never taken from the library, as the two count from different beginnings. NULL is fine. */
void rocm_fill(struct rocm *rocm, size_t i, struct gpu_state *gpu);

/* Why the library is not used; "" when it is. NULL is fine. */
void rocm_remark(struct rocm *rocm, char *text, size_t size);

/* Ends the process. NULL is fine. */
void rocm_stop(struct rocm *rocm);
