/* SPDX-License-Identifier: MIT */
/*
 * Closes the device nodes of this machine's GPUs to logins, and opens them again. The agent opens them to the
 * users of running jobs (agent/gpu/access.h).
 *
 *      NONE ──lock──> BEGUN ──files, nodes──> HELD ──unlock──> BEGUN ──nodes, files──> NONE
 *
 * Both can be repeated after they were interrupted at any point, and either may follow the other.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

#define GPU_LOCK_STATE "gpu-lock" // in the state directory

/* Where things are. */
struct gpu_lock_places {
    const char *root;  // "" is this machine
    const char *state; // path of the state file
};

/* What was done. */
struct gpu_lock_result {
    struct strings nodes; // names below /dev
    bool is_pending;      // the loaded NVIDIA driver still has its old options
};

void gpu_lock_result_clear(struct gpu_lock_result *result);

/* Root and members of the group `gid` (0: none) keep access. -ENODEV: there is no node of a GPU. -EEXIST: a
 * file of that name is not mgpu's. -EOPNOTSUPP: the nodes cannot have access lists; nothing is left
 * changed. */
int gpu_lock_lock(
    const struct gpu_lock_places *places, gid_t gid, struct gpu_lock_result *ret, struct error *err);

/* Makes everything as it was before the first lock; nodes that are new since then get what others of their
 * kind had. -ENOENT: it is not locked. */
int gpu_lock_unlock(const struct gpu_lock_places *places, struct gpu_lock_result *ret, struct error *err);

/* True if the options with which the NVIDIA driver was loaded make its programs undo the lock (`is_locked`),
 * or restore it. False without that driver. */
bool gpu_lock_is_pending(const char *root, gid_t gid, bool is_locked);
