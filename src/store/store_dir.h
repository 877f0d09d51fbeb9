/* SPDX-License-Identifier: MIT */
/* The directory of a store: private, on a local disk, used by one daemon at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define STORE_LOCK "lock"

/* The name of a file system on which a store is not safe, by its statfs(2) magic; NULL if it is safe. */
const char *store_dir_unsafe(uint64_t magic);

/* Opens `dir`, created with mode 0700 if missing. */
int store_dir_open(const char *dir, char **ret_path, int *ret_dirfd, struct error *err);

/* Takes DIR/lock, held until *ret_lockfd is closed; -EBUSY names the process that has it. */
int store_dir_lock(const char *path, int dirfd, int *ret_lockfd, struct error *err);

/* The size of a file in the directory, -1 if it does not exist. */
off_t store_dir_size(int dirfd, const char *name);
