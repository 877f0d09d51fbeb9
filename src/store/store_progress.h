/* SPDX-License-Identifier: MIT */
/* Reports of work in the store that may take long. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* `tell` is called often, on the thread that works. `what` is what is done, in words; NULL: the work of this
 * thread has ended. `total` 0: not known. NULL instead of a function: nobody listens. */
struct store_progress {
    void (*tell)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *arg;
};

/* `progress` may be NULL. */
void store_progress_tell(
    const struct store_progress *progress, const char *what, uint64_t done, uint64_t total);

/* Statements of a connection, of which it is known only that they go on. */
struct store_progress_statements {
    const struct store_progress *progress;
    const char *what;
};

/* Tells of all statements on `db` until store_progress_unwatch; `statements` lives as long. */
void store_progress_watch(sqlite3 *db, struct store_progress_statements *statements);
void store_progress_unwatch(sqlite3 *db);
