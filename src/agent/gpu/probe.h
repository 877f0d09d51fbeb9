/* SPDX-License-Identifier: MIT */
/* The main loop of the GPU helper process: opens a backend and writes reports until the reader closes. */
#pragma once

#include <stdint.h>

#include "agent/gpu/progress_page.h"
#include "wire/gpu_spec.h"

/* Returns the exit status of the process. The first report is written immediately. `page` may be NULL. A GPU
 * that does not respond for `silent_ms` is lost. */
int gpu_probe_run(
    int fd, const struct gpu_spec *spec, struct gpu_progress *page, int64_t period_ms, int64_t silent_ms);
