/* SPDX-License-Identifier: MIT */
/* The leader's part of store_replica.c: what the store calls around each transaction. All of it does nothing
 * in a store without a log. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"
#include "store/store_replica.h"

#define STORE_REPLICA "replica" // the table with the position

struct store;

/* At a start: the position; -EXDEV if the store belongs to a cluster and is opened without its log. */
int store_recording_open(struct store *store, struct error *err);

/* The position that a store of a cluster has; -ENXIO: it belongs to none. */
int store_recording_position(sqlite3 *db, struct store_position *ret, struct error *err);

/* After BEGIN. */
int store_recording_begin(struct store *store, struct error *err);

/* Before COMMIT: appends the changes to the log. Once store->is_appended is set, the transaction must be
 * committed or the store must end. */
int store_recording_append(struct store *store, struct error *err);

void store_recording_end(struct store *store);
