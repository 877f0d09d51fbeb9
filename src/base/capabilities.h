/* SPDX-License-Identifier: MIT */
/* The capabilities of a process (capabilities(7)), as a set with one bit for each. */
#pragma once

#include <linux/capability.h>
#include <stdint.h>

#define CAPABILITY(number) (UINT64_C(1) << (number))
#define CAPABILITIES_ALL   UINT64_MAX

/* No program that this process or a child of it executes gets another one, whatever its file permits. What
 * the process has does not change. Needs CAP_SETPCAP, and changes nothing without it. */
void capabilities_bound(uint64_t kept);

/* The same, and the process itself has no others from now on either; only the calling thread. */
void capabilities_keep(uint64_t kept);
