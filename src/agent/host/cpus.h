/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* The CPUs available to jobs: the agent itself may be excluded from some. */
uint32_t cpus_count(void);
