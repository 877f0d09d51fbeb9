/* SPDX-License-Identifier: MIT */
/* The capabilities of a process (capabilities(7)), as a set with one bit for each. */
#pragma once

#include <linux/capability.h>
#include <stdint.h>

#define CAPABILITY(number) (UINT64_C(1) << (number))
#define CAPABILITIES_ALL   UINT64_MAX

/* Limits every program that this process or a child executes to these capabilities, whatever its file
 * permits. Those of the process itself do not change. Needs CAP_SETPCAP, and changes nothing without it. */
void capabilities_bound(uint64_t kept);

/* The same, and removes all others from the process itself; only in the calling thread. */
void capabilities_keep(uint64_t kept);
