/* SPDX-License-Identifier: MIT */
/* Snapshots of the database in DIR/backup, taken while the store is in use. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_BACKUP         "backup"
#define STORE_SNAPSHOTS_KEPT 3

struct store;

/* Takes a complete snapshot at once, before the store's thread exists. */
int store_snapshot_take(struct store *store, struct error *err);

/* Writes a complete copy as of now, on any thread, beside commits. The caller keeps or discards it.
 * -ECANCELED when the store closes. */
int store_snapshot_write(struct store *store, struct error *err);

/* The copy in DIR/backup that has no number yet; the caller frees the path. */
char *store_snapshot_copy_path(const struct store *store);

/* Makes it the newest snapshot and removes old ones. */
int store_snapshot_keep(struct store *store, struct error *err);
void store_snapshot_discard(struct store *store);

/* The name of the newest snapshot, relative to DIR; the caller frees it. NULL if there is none. */
char *store_snapshot_newest(int dirfd);

/* Sets a hint that says how to restore the newest snapshot, or that there is none. */
int store_snapshot_hint(int dirfd, const char *dir, struct error *err);
