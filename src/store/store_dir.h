/* SPDX-License-Identifier: MIT */
/* The directory that a store lives in: ours alone, on a local disk, used by one daemon at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define STORE_LOCK "lock"

/* The name of a file system on which a store is not safe, by its statfs(2) magic; NULL when it is. */
const char *store_dir_unsafe(uint64_t magic);

/* Makes `dir` when it is missing and opens it, mode 0700. */
int store_dir_open(const char *dir, char **ret_path, int *ret_dirfd, struct error *err);

/* Takes DIR/lock, which is held until *ret_lockfd closes; -EBUSY names the process that has it. */
int store_dir_lock(const char *path, int dirfd, int *ret_lockfd, struct error *err);

/* The size of a file in the directory, -1 when there is none. */
off_t store_dir_size(int dirfd, const char *name);
