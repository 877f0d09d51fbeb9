/* SPDX-License-Identifier: MIT */
/* The default limit of processes and threads of one job. */
#pragma once

#include <stdint.h>

#define PIDS_MAX         4194304U // the maximum of Linux
#define PIDS_MAX_DEFAULT 32768U

/* PIDS_MAX_DEFAULT, or a quarter of the kernel's limit if that is lower, so that two jobs cannot exhaust the
 * node. */
uint32_t pids_max_default(void);

/* The same for a kernel with that limit; 0: unknown. */
uint32_t pids_max_of(uint64_t kernel_max);
