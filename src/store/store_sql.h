/* SPDX-License-Identifier: MIT */
/* SQLite as this room uses it: connections with our settings, result codes as errnos and sentences. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

#define STORE_CACHE_KIB      8192     // memory one connection may use for pages
#define STORE_BUSY_MS        10000    // wait for another process (fsck, sqlite3) that holds a lock
#define STORE_WAL_KEEP_BYTES 67108864 // a write-ahead log larger than this is cut when it starts anew

enum store_access { STORE_READ, STORE_WRITE };

/* Opens an existing database file. With STORE_WRITE every commit is on disk when COMMIT returns. */
int store_sql_open(const char *path, enum store_access access, sqlite3 **ret, struct error *err);
void store_sql_closep(sqlite3 **db);

/* The negative errno of a result code: -ENOSPC only when a write, and not a sync, found no space. */
int store_sql_code(sqlite3 *db, int rc);

/* "WHAT: what SQLite says", with the code above. */
int store_sql_fail(struct error *err, sqlite3 *db, int rc, const char *what);

int store_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct error *err);
void store_sql_finalizep(sqlite3_stmt **statement);

/* Runs statements that give no rows, and takes no values from anywhere. */
int store_sql_run(sqlite3 *db, const char *sql, struct error *err);
/* One statement; the number is its ?1, if it has one. */
int store_sql_run_number(sqlite3 *db, const char *sql, int64_t number, struct error *err);

/* Runs one prepared statement to its end and makes it ready for the next use. */
int store_sql_finish(sqlite3_stmt *statement, const char *what, struct error *err);

/* The first column of the first row, 0 when it is NULL; -ENOENT when there is no row. */
int store_sql_number(sqlite3 *db, const char *sql, int64_t *ret, struct error *err);

/* A copy of a text column, NULL for NULL. */
char *store_sql_text(sqlite3_stmt *statement, int column);

#define _cleanup_database_  _cleanup_(store_sql_closep)
#define _cleanup_statement_ _cleanup_(store_sql_finalizep)
