/* SPDX-License-Identifier: MIT */
/* The tables, and how an older database becomes the present one. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define STORE_APPLICATION_ID 0x6d677075 // "mgpu", in the file's header
#define STORE_KEY_LIFE_MS    (7LL * 24 * 3600 * 1000)
#define STORE_RESTORE_GAP                                                                                    \
    1000000 // ids skipped after a restored snapshot: more than can have been given since

/* What meta's `mark` says of the file. */
enum store_mark {
    STORE_CLOSED,   // everything is in the database file
    STORE_IN_USE,   // the write-ahead log belongs to it; without the log the latest commits are missing
    STORE_SNAPSHOT, // a copy made while the store went on: ids and events after it were given out
};

struct schema_step {
    int version; // after the step
    const char *sql;
};

extern const struct schema_step store_schema_steps[];
extern const size_t store_schema_n_steps;

/* The highest version this program knows. */
int store_schema_version(void);

/* Makes the tables in an empty database that becomes the store `instance`. */
int store_schema_create(sqlite3 *db, const char *instance, struct error *err);

/* Runs the steps that the database has not seen yet, each in a transaction of its own. */
int store_schema_upgrade(sqlite3 *db, const struct schema_step *steps, size_t count, struct error *err);

/* -EUCLEAN: not a store of ours; -ENOTSUP: made by a newer mgpu. */
int store_schema_check(sqlite3 *db, const char *path, int *ret_version, struct error *err);
