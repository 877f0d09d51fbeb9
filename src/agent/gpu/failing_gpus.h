/* SPDX-License-Identifier: MIT */
/* The failing GPUs of a node: those that hang, have fallen off the bus or are no longer listed, and when to
 * probe each again. The list is owned by gpu/helper.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/gpu/child.h"

/* A GPU to be probed again. */
struct failing_gpu {
    char key[GPU_KEY_SIZE];
    bool is_hung; // excluded; else the current helper also queries it
    int64_t pause_ms, due_ms;
    const struct gpu_child *stuck; // this process hangs in a call for it
};

struct failing_gpus {
    const struct gpu_helper_timing *timing;
    struct failing_gpu *items;
    size_t count;
};

/* NULL: not in the list. Valid until the list changes, as is the next one. */
struct failing_gpu *failing_gpus_find(const struct failing_gpus *failing_gpus, const char *key);

/* Adds it, due after the shortest pause, unless it is in the list. */
struct failing_gpu *failing_gpus_add(struct failing_gpus *failing_gpus, const char *key, bool is_hung);

/* Removes it; no effect if it is not in the list. */
void failing_gpus_remove(struct failing_gpus *failing_gpus, const char *key);

/* A probe has failed: the next follows after a longer pause. */
void failing_gpus_back_off(const struct failing_gpus *failing_gpus, struct failing_gpu *failing_gpu);

/* Twice the pause, up to the longest one. */
int64_t failing_gpus_lengthen(const struct failing_gpus *failing_gpus, int64_t pause_ms);

/* True if any of them hangs and is excluded. */
bool failing_gpus_have_hung(const struct failing_gpus *failing_gpus);

/* The first one due, among those in which no process hangs; NULL: none. */
struct failing_gpu *failing_gpus_next(const struct failing_gpus *failing_gpus);

/* That process has ended. */
void failing_gpus_free_stuck(const struct failing_gpus *failing_gpus, const struct gpu_child *child);
