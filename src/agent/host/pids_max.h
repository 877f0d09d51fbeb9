/* SPDX-License-Identifier: MIT */
/* How many processes and threads one job may have when nobody has said it. */
#pragma once

#include <stdint.h>

#define PIDS_MAX         4194304U // as many as Linux can count
#define PIDS_MAX_DEFAULT 32768U

/* PIDS_MAX_DEFAULT, or a quarter of what this kernel can have, so that not even two jobs take the node's last
 * one. */
uint32_t pids_max_default(void);

/* The same for a kernel with that limit; 0: not known. */
uint32_t pids_max_of(uint64_t kernel_max);
