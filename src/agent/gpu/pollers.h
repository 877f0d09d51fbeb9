/* SPDX-License-Identifier: MIT */
/* Reads all GPUs of a backend at once, each in a thread of its own, so that one that hangs keeps nobody from
 * the others. Used inside the GPU helper process. */
#pragma once

#include <stdbool.h>

#include "agent/gpu/gpu.h"

struct gpu_pollers;

/* `gpus` (struct gpu_state) are described. NULL when there is one GPU or no threads can be had: then they are
 * read one after the other. Each turn that ends is a step of the page. */
struct gpu_pollers *gpu_pollers_new(const struct gpu_backend *backend, void *state, struct gpu_progress *page,
    const struct record_list *gpus, int64_t silent_ms);

/*
 * Begins a turn of each GPU that has none under way and needs one, for a full sample or because the page
 * says that a look at it is wanted. Waits for these for a short time, and brings `gpus` up to date with all
 * that has ended. A GPU whose turn has not ended for `silent_ms` is lost. While no GPU answers, the page is
 * told which one has been read for the longest time. True when a GPU answers a look that it had not answered
 * before.
 */
bool gpu_pollers_read(struct gpu_pollers *turns, bool is_full, struct record_list *gpus);

/* Readable when a turn has ended since the last read, which should then be called; -1 for NULL. */
int gpu_pollers_fd(const struct gpu_pollers *turns);

/* Ends the threads. False when one of them hangs: then neither they nor the backend's state can be freed, and
 * the process has to end. NULL is fine. */
bool gpu_pollers_end(struct gpu_pollers *turns);
