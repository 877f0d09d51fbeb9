/* SPDX-License-Identifier: MIT */
/* Directories for temporary files that only one job sees: mount and IPC namespaces, and a tmpfs on each. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/private_places.h"

/*
 * Moves the calling process, which has one thread and CAP_SYS_ADMIN, into its own namespaces, in which
 * these directories are empty. Mounts of the machine still appear in it, and none of its own appear outside.
 * The kernel frees the files with the last process inside, and charges them to the cgroup of the process that
 * writes them. Returns 0 or a negative errno; then the process must not continue.
 */
int private_tmp_enter(enum private_tmp which);

/* Moves the calling process into the namespaces of the process of that pidfd. Returns 0 or a negative errno.
 */
int private_tmp_join(int pidfd);

/* True if the open file is on one of the file systems that private_tmp_enter() has mounted for this process.
 */
bool private_tmp_has(int fd);

/* Tries private_tmp_enter() in a child. Returns 0, or a negative errno with the reason in `err`. */
int private_tmp_probe(struct error *err);
