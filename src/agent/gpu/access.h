/* SPDX-License-Identifier: MIT */
/*
 * The users who may open the device nodes of this machine's GPUs while these are locked (gpulock/lock.h):
 * those of running jobs, each the nodes of the GPUs that their jobs have. Without the lock nothing is
 * changed.
 */
#pragma once

#include <sys/types.h>

#include "agent/gpu/devices.h"
#include "base/error.h"
#include "base/spool_id.h"

struct gpu_access;

/* `state_dir` contains the state of the lock. `devices` is borrowed. NULL if the agent is not root, and
 * cannot change nodes: the calls below then do nothing. */
struct gpu_access *gpu_access_new(
    const char *state_dir, const char *device_dir, const struct gpu_devices *devices);
void gpu_access_free(struct gpu_access *access); // NULL is allowed

/* The attempt of this user has these GPUs (struct gpu_grant, copied) until gpu_access_drop(). An error: its
 * processes could not open them. */
int gpu_access_take(struct gpu_access *access, const struct spool_id *id, uid_t uid,
    const struct record_list *grants, struct error *err);
void gpu_access_drop(struct gpu_access *access, const struct spool_id *id);

/* Once a second: gives nodes that are new, or that the driver has opened, the access they should have. */
void gpu_access_refresh(struct gpu_access *access);

/* For `mgpu doctor`: a sentence, which the caller frees, and in *ret_fix how to close them; *ret_is_on is
 * true if they are locked. */
char *gpu_access_describe(const char *state_dir, bool *ret_is_on, const char **ret_fix);
