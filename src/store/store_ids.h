/* SPDX-License-Identifier: MIT */
/* Ensures that no job id is assigned twice, even if the latest commits are lost. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_ID_BLOCK 1000 // ids reserved at a time

struct store;
struct store_found;

/* In the transaction that begins an epoch: continues above all numbers that can have been used, and reserves
 * ids. */
int store_ids_begin(struct store *store, const struct store_found *found, struct error *err);

/* In a transaction: advances ids, events and epochs by this number. */
int store_ids_skip(sqlite3 *db, uint64_t gap, struct error *err);

/* On the store's thread, before a commit: ensures that ids up to `highest` are reserved. */
int store_ids_reserve(struct store *store, uint64_t highest, struct error *err);

/* Copies the contents of the write-ahead log into the database file, as far as readers and disk space
 * allow. */
int store_ids_write_through(struct store *store, struct error *err);
