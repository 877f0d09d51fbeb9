/* SPDX-License-Identifier: MIT */
/*
 * Backups: one SQLite file with a snapshot of the store (docs/store.md) and, in an additional table,
 * everything else that mgpud needs to continue as the same instance: the keys of its cluster and its
 * settings.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct store_progress;

struct store_backup_file {
    const char *name;
    const void *bytes;
    size_t length;
};

/*
 * Writes a backup of the store in DIR to PATH, an existing empty file. Uses one read transaction, so the
 * backup is consistent and a running mgpud is not affected. Synced. On failure the contents of PATH are
 * unusable. `progress` may be NULL.
 */
int store_backup_write(const char *dir, const char *path, const struct store_backup_file *files,
    size_t n_files, const struct store_progress *progress, struct error *err);

/*
 * Converts the backup PATH into a store in place: checks it (-EBADMSG: no backup, -EUCLEAN: damaged,
 * -ENOTSUP: created by a newer mgpu), passes each file in it to `visit`, and removes these. Returns an error
 * of `visit`. *ret_jobs: number of jobs in it.
 */
int store_backup_unpack(const char *path,
    int (*visit)(void *arg, const struct store_backup_file *file, struct error *err), void *arg,
    const struct store_progress *progress, uint64_t *ret_jobs, struct error *err);
