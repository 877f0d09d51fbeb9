/* SPDX-License-Identifier: MIT */
/* The inside of the GPU helper process: opens a backend and writes reports until nobody reads them. */
#pragma once

#include <stdint.h>

#include "agent/gpu/progress_page.h"
#include "wire/gpu_spec.h"

/* Returns the exit status of the process. The first report is written at once. `page` may be NULL.
 * A GPU that does not answer for `silent_ms` is lost. */
int gpu_probe_run(
    int fd, const struct gpu_spec *spec, struct gpu_progress *page, int64_t period_ms, int64_t silent_ms);
