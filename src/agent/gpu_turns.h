/* SPDX-License-Identifier: MIT */
/* Reads all GPUs of a backend at once, each in a thread of its own, so that one that hangs keeps nobody from
 * the others. Used inside the GPU helper process. */
#pragma once

#include <stdbool.h>

#include "agent/gpu.h"

struct gpu_turns;

/* `gpus` (struct gpu_state) are described. NULL when there is one GPU or no threads can be had: then they are
 * read one after the other. */
struct gpu_turns *gpu_turns_new(
    const struct gpu_backend *backend, void *state, const struct record_list *gpus, int64_t silent_ms);

/*
 * Has each GPU read that is not being read since before, waits for them for a short time, and brings `gpus`
 * up to date with what is there. One that has not answered for `silent_ms` is lost. Returns NULL when a GPU
 * answers, else the position's key of the one that is being read for the longest time.
 */
const char *gpu_turns_read(struct gpu_turns *turns, bool is_full, struct record_list *gpus);

/* Ends the threads. False when one of them hangs: then neither they nor the backend's state can be freed, and
 * the process has to end. NULL is fine. */
bool gpu_turns_end(struct gpu_turns *turns);
