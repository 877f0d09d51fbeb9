/* SPDX-License-Identifier: MIT */
/*
 * A file in RUN that one user may read and, if it is a script, execute. Root owns it: an owner could make it
 * writable and fill RUN, which is in memory, so that no job could start or be cancelled.
 */
#pragma once

#include <sys/types.h>

/* Lets the user read the file `fd`, with the permissions that `mode` (0400 or 0500) would give an owner. If
 * the file system has no access control lists, the user becomes the owner. Without root, the file already
 * belongs to the user. */
int user_file_share(int fd, uid_t uid, gid_t gid, mode_t mode);
