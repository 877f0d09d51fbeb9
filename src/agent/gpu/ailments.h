/* SPDX-License-Identifier: MIT */
/* The GPUs of a node that ail: those that hang, fell off the bus or are not listed any more, and when each is
 * to be tried again. The helpers' owner keeps this list (gpu/helper.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/gpu/child.h"

/* A GPU that is to be tried again. */
struct gpu_ailment {
    char key[GPU_KEY_SIZE];
    bool is_hung; // left out; else the current helper asks it too
    int64_t pause_ms, due_ms;
    const struct gpu_child *stuck; // this process hangs there
};

struct gpu_ailments {
    const struct gpu_helper_timing *timing;
    struct gpu_ailment *items;
    size_t count;
};

/* NULL: it does not ail. Good until the list changes, as the next one is. */
struct gpu_ailment *gpu_ailments_find(const struct gpu_ailments *ailments, const char *key);

/* Makes one that is due after the shortest pause, unless there is one. */
struct gpu_ailment *gpu_ailments_note(struct gpu_ailments *ailments, const char *key, bool is_hung);

/* It does not ail any more; fine when it did not. */
void gpu_ailments_end(struct gpu_ailments *ailments, const char *key);

/* A trial has failed: the next one comes after a longer pause. */
void gpu_ailments_put_off(const struct gpu_ailments *ailments, struct gpu_ailment *ailment);

/* Twice as long, up to the longest pause. */
int64_t gpu_ailments_lengthen(const struct gpu_ailments *ailments, int64_t pause_ms);

/* True when one hangs, and is left out. */
bool gpu_ailments_have_hung(const struct gpu_ailments *ailments);

/* The one that is due first, of those at which no process hangs; NULL: none. */
struct gpu_ailment *gpu_ailments_next(const struct gpu_ailments *ailments);

/* That process is gone. */
void gpu_ailments_free_stuck(const struct gpu_ailments *ailments, const struct gpu_child *child);
