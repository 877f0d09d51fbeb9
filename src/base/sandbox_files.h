/* SPDX-License-Identifier: MIT */
/* Limits the files that a process can change, so that a hole in it leads to less. */
#pragma once

#include <stddef.h>

#include "base/error.h"

/*
 * From now on the calling thread, and the threads and children that it creates, can open files for writing,
 * create, rename, truncate and remove them only in these directories and what is below them, or these files
 * themselves. What is open remains open; reading, connecting and executing are as before. It also sets
 * no_new_privs. There is no way back. On kernels without Landlock it returns -ENOTSUP, and nothing has
 * changed.
 */
int sandbox_limit_changes(const char *const *paths, size_t count, struct error *err);
