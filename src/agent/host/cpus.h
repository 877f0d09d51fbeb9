/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

/* The CPUs that jobs can have: the agent may be kept off some. */
uint32_t cpus_count(void);
