/* SPDX-License-Identifier: MIT */
/* Device nodes of the GPUs of a machine, and who may open them: owner, group, mode and access list. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/strings.h"

/* Who may open a node. */
struct gpu_node_access {
    uid_t uid;
    gid_t gid;
    mode_t mode;       // permission bits
    struct buffer acl; // as the kernel stores it (acl(5), system.posix_acl_access); empty: none
};

void gpu_node_access_clear(struct gpu_node_access *access);

/* The nodes in `device_dir` that give access to the compute units or the memory of GPUs, as names below it:
 * "nvidia0", "nvidiactl", "kfd", "dri/renderD128". Render nodes of other devices are left out; `sysfs` tells
 * which they are. Sorted. */
void gpu_nodes_list(const char *device_dir, const char *sysfs, struct strings *ret);

/* -errno; -ENODEV: it is no character device. Symbolic links are not followed. */
int gpu_node_read(const char *path, struct gpu_node_access *ret);
/* Makes it exactly that; does nothing if it is. */
int gpu_node_write(const char *path, const struct gpu_node_access *access);

/*
 * The access of a locked node: root, this group, and these users. The mode stays the same with and without
 * users (0660): the bits of the group are the mask of the list (acl(5)), and the NVIDIA driver's programs
 * replace a node whose mode is not that of the module's options.
 */
void gpu_node_access_lock(gid_t gid, const uid_t *uids, size_t count, struct gpu_node_access *ret);
