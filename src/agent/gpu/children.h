/* SPDX-License-Identifier: MIT */
/* The GPU helper processes that exist: the current one, a probe, and those that were dismissed and have not
 * ended. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/gpu/child.h"
#include "agent/gpu/helper.h"
#include "agent/gpu/roster.h"

struct gpu_children {
    struct gpu_child *current, *trial; // NULL: none
    struct gpu_child *dismissed[GPU_HELPERS_MAX];
    size_t n_dismissed;
    const struct gpu_child *starting; // hangs in the driver's start
};

/* Of a child that is neither current nor the probe any more. It is kept until gpu_children_end(). */
void gpu_children_dismiss(struct gpu_children *children, struct gpu_child *child);

/* The process of a dismissed child has ended: frees the child. */
void gpu_children_end(struct gpu_children *children, struct gpu_child *child);

/* One more process is allowed. */
bool gpu_children_have_room(const struct gpu_children *children);

/* Marks the released GPUs that no process may have open any more. True if there is one that was not marked.
 */
bool gpu_children_note_released(const struct gpu_children *children, struct gpu_roster *roster);

void gpu_children_clear(struct gpu_children *children);
