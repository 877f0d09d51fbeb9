/* SPDX-License-Identifier: MIT */
/* No job id is given out twice, whatever became of the latest commits. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_ID_BLOCK 1000 // ids that are reserved at once

struct store;
struct store_found;

/* In the transaction that begins an epoch: goes on where no number can have been given out, and reserves ids.
 */
int store_ids_begin(struct store *store, const struct store_found *found, struct error *err);

/* In a transaction: ids, events and epochs go on this much higher. */
int store_ids_skip(sqlite3 *db, uint64_t gap, struct error *err);

/* On the store's thread, before a commit: makes sure that ids up to `highest` are reserved. */
int store_ids_reserve(struct store *store, uint64_t highest, struct error *err);

/* Brings what the log has into the database file, as far as nobody reads an older state and the disk has
 * room.
 */
int store_ids_write_through(struct store *store, struct error *err);
