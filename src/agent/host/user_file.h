/* SPDX-License-Identifier: MIT */
/*
 * A file in RUN that one user may read and, a script, execute. It stays root's: a user who owned it could
 * make it writable and fill the memory that RUN is with it, and then nobody's job starts or can be cancelled.
 */
#pragma once

#include <sys/types.h>

/* Lets the user read what `fd` is open on, with `mode` (0400 or 0500) as an owner has it. Where the file
 * system keeps no access lists the user becomes its owner after all. Without root the file is ours and stays
 * so. */
int user_file_share(int fd, uid_t uid, gid_t gid, mode_t mode);
