/* SPDX-License-Identifier: MIT */
/* The failing GPUs of a node: those that hang, have fallen off the bus or are no longer listed, and when to
 * probe each again. The list is owned by gpu/helper.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/gpu/child.h"

/* A GPU to be probed again. */
struct gpu_ailment {
    char key[GPU_KEY_SIZE];
    bool is_hung; // excluded; else the current helper also queries it
    int64_t pause_ms, due_ms;
    const struct gpu_child *stuck; // this process hangs in a call for it
};

struct gpu_ailments {
    const struct gpu_helper_timing *timing;
    struct gpu_ailment *items;
    size_t count;
};

/* NULL: not in the list. Valid until the list changes, as is the next one. */
struct gpu_ailment *gpu_ailments_find(const struct gpu_ailments *ailments, const char *key);

/* Adds it, due after the shortest pause, unless it is in the list. */
struct gpu_ailment *gpu_ailments_note(struct gpu_ailments *ailments, const char *key, bool is_hung);

/* Removes it; no effect if it is not in the list. */
void gpu_ailments_end(struct gpu_ailments *ailments, const char *key);

/* A probe has failed: the next follows after a longer pause. */
void gpu_ailments_put_off(const struct gpu_ailments *ailments, struct gpu_ailment *ailment);

/* Twice the pause, up to the longest one. */
int64_t gpu_ailments_lengthen(const struct gpu_ailments *ailments, int64_t pause_ms);

/* True if any of them hangs and is excluded. */
bool gpu_ailments_have_hung(const struct gpu_ailments *ailments);

/* The first one due, among those in which no process hangs; NULL: none. */
struct gpu_ailment *gpu_ailments_next(const struct gpu_ailments *ailments);

/* That process has ended. */
void gpu_ailments_free_stuck(const struct gpu_ailments *ailments, const struct gpu_child *child);
