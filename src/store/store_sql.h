/* SPDX-License-Identifier: MIT */
/* SQLite as used by the store: connections with its settings, and result codes as errnos and messages. */
#pragma once

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "store/store_progress.h"

#define STORE_CACHE_KIB      8192     // page cache of one connection
#define STORE_BUSY_MS        10000    // timeout for locks held by another process (fsck, sqlite3)
#define STORE_WAL_KEEP_BYTES 67108864 // a larger write-ahead log is truncated when it restarts

enum store_access { STORE_READ, STORE_WRITE };

/* Opens an existing database file. With STORE_WRITE every commit is on disk when COMMIT returns. */
int store_sql_open(const char *path, enum store_access access, sqlite3 **ret, struct error *err);
/* Opens a database file that is being made, without the store's settings. */
int store_sql_open_plain(const char *path, sqlite3 **ret, struct error *err);
void store_sql_closep(sqlite3 **db);

/* Copies all pages in one read transaction: commits of a running mgpud do not disturb it. Errors begin with
 * `what`. `progress` may be NULL; -ECANCELED once `is_stopping` is set, which may be NULL. */
int store_sql_copy(sqlite3 *from, sqlite3 *to, const char *what, const struct store_progress *progress,
    const atomic_bool *is_stopping, struct error *err);

/* For a store whose changes are durable elsewhere before they are committed here: COMMIT no longer waits for
 * the disk. After a power failure the latest commits may be missing, or store_check() finds the log damaged.
 */
int store_sql_relax(sqlite3 *db, struct error *err);

/* The negative errno of a result code: -ENOSPC only if a write, not a sync, found no space. */
int store_sql_code(sqlite3 *db, int rc);

/* "WHAT: message of SQLite", with the code above. */
int store_sql_fail(struct error *err, sqlite3 *db, int rc, const char *what);

int store_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct error *err);
void store_sql_finalizep(sqlite3_stmt **statement);

/* Runs statements without results and parameters. */
int store_sql_run(sqlite3 *db, const char *sql, struct error *err);
/* Runs one statement; the number is its ?1, if it has one. */
int store_sql_run_number(sqlite3 *db, const char *sql, int64_t number, struct error *err);

/* Runs one prepared statement to its end and resets it. */
int store_sql_finish(sqlite3_stmt *statement, const char *what, struct error *err);

/* The first column of the first row, 0 if it is NULL; -ENOENT if there is no row. */
int store_sql_number(sqlite3 *db, const char *sql, int64_t *ret, struct error *err);

/* A copy of a text column, NULL for NULL. */
char *store_sql_text(sqlite3_stmt *statement, int column);

#define _cleanup_database_  _cleanup_(store_sql_closep)
#define _cleanup_statement_ _cleanup_(store_sql_finalizep)
