/* SPDX-License-Identifier: MIT */
/*
 * A backup: one SQLite file that is a snapshot of the store (docs/store.md) and has, in a table of its own,
 * what else mgpud needs to go on as the same one: the keys of its cluster, its settings.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct store_backup_file {
    const char *name;
    const void *bytes;
    size_t length;
};

/*
 * Writes a backup of the store in DIR to PATH, an empty file that exists. One read transaction: it is the
 * store of one moment, and an mgpud that runs goes on meanwhile. Synced. On failure PATH holds nothing of
 * use.
 */
int store_backup_write(const char *dir, const char *path, const struct store_backup_file *files,
    size_t n_files, struct error *err);

/*
 * Makes a store of the backup PATH, in place: checks it (-EBADMSG: no backup, -EUCLEAN: damaged, -ENOTSUP:
 * made by a newer mgpu), gives each file in it to `visit`, and takes them out. An error of `visit` is
 * returned. *ret_jobs: how many jobs it has.
 */
int store_backup_unpack(const char *path,
    int (*visit)(void *arg, const struct store_backup_file *file, struct error *err), void *arg,
    uint64_t *ret_jobs, struct error *err);
