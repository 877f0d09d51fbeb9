/* SPDX-License-Identifier: MIT */
/* Host memory for the contents of GPU memory. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "job/launch.h"

/* Checks that the node, and the job's own limit, have room for this many more bytes, and that they are not
 * more than `bytes_max`. -ENOMEM with what is missing. */
int host_memory_check(const struct launch_spec *spec, uint64_t bytes, uint64_t bytes_max, struct error *err);
