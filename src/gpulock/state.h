/* SPDX-License-Identifier: MIT */
/* The state file of the lock: who could open each node before, which unlock restores. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "gpulock/nodes.h"

enum gpu_lock_phase {
    GPU_LOCK_NONE,  // no state file
    GPU_LOCK_BEGUN, // lock or unlock has not finished: either continues
    GPU_LOCK_HELD,
};

struct gpu_lock_node {
    char *name; // below the directory of devices
    struct gpu_node_access before;
};

struct gpu_lock_state {
    enum gpu_lock_phase phase;
    gid_t gid; // members open the GPUs without a job; 0: root alone
    struct gpu_lock_node *nodes;
    size_t count;
};

void gpu_lock_state_clear(struct gpu_lock_state *state);

/* 0 with GPU_LOCK_NONE if there is no file. -EBADMSG: it is damaged. */
int gpu_lock_state_read(const char *path, struct gpu_lock_state *ret, struct error *err);
/* Durably, and never in part. Creates its directory. */
int gpu_lock_state_write(const char *path, const struct gpu_lock_state *state, struct error *err);

/* NULL: it is not listed. */
const struct gpu_lock_node *gpu_lock_state_find(const struct gpu_lock_state *state, const char *name);
/* Takes the access over. */
void gpu_lock_state_add(struct gpu_lock_state *state, const char *name, struct gpu_node_access *access);
