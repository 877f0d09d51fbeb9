/* SPDX-License-Identifier: MIT */
/* Limits the files that a process can change, which limits the damage of an exploit. */
#pragma once

#include <stddef.h>

#include "base/error.h"

/*
 * From now on the calling thread, and the threads and children that it creates, can open files for writing,
 * create, rename, truncate and remove them only at or below these paths. Open files stay
 * open; reading, connecting and executing are not affected. It also sets no_new_privs.
 * There is no way back. On kernels without Landlock it returns -ENOTSUP, and nothing has
 * changed.
 */
int sandbox_limit_changes(const char *const *paths, size_t count, struct error *err);
