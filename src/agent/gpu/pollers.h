/* SPDX-License-Identifier: MIT */
/* Reads all GPUs of a backend in parallel, each in its own thread, so that one that hangs does not delay the
 * others. Used inside the GPU helper process. */
#pragma once

#include <stdbool.h>

#include "agent/gpu/gpu.h"

#define GPU_POLLER "mgpu-poller" // the name of each of their threads

struct gpu_pollers;

/* `gpus` (struct gpu_state) are described. NULL if there is one GPU or threads cannot be created: GPUs are
 * then read one after the other. Each completed turn is a step of the page. */
struct gpu_pollers *gpu_pollers_new(const struct gpu_backend *backend, void *state, struct gpu_progress *page,
    const struct record_list *gpus, int64_t silent_ms);

/*
 * Begins a turn for each idle GPU that needs one, for a full sample or because the page requests a check.
 * Waits for them for a short time, and updates `gpus` with all completed turns. A GPU whose turn has not
 * ended for `silent_ms` is lost. While no GPU responds, the page names the one that has been read for the
 * longest time. True if a GPU answers a check for the first time.
 */
bool gpu_pollers_read(struct gpu_pollers *turns, bool is_full, struct record_list *gpus);

/* Readable when a turn has ended since the last call of gpu_pollers_read(); -1 for NULL. */
int gpu_pollers_fd(const struct gpu_pollers *turns);

/* Ends the threads. False if one of them hangs: then neither the threads nor the backend's state can be
 * freed, and the process must exit. NULL is allowed. */
bool gpu_pollers_end(struct gpu_pollers *turns);
