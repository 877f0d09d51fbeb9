/* SPDX-License-Identifier: MIT */
/* The inside of the GPU helper process: opens a backend and writes reports until nobody reads them. */
#pragma once

#include <stdint.h>

#include "wire/gpu_spec.h"

/* Returns the exit status of the process. The first report is written at once. */
int gpu_probe_run(int fd, const struct gpu_spec *spec, int64_t period_ms);
