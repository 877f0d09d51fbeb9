/* SPDX-License-Identifier: MIT */
/* Progress reports of work in the store that may take long. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

/* `tell` is called often, on the working thread. `what` describes the work in words; NULL: the work of this
 * thread has ended. `total` 0: not known. NULL instead of a function: no reports. */
struct store_progress {
    void (*report)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *arg;
};

/* `progress` may be NULL. */
void store_progress_report(
    const struct store_progress *progress, const char *what, uint64_t done, uint64_t total);

/* Statements of a connection, which can only be reported as still running. */
struct store_progress_statements {
    const struct store_progress *progress;
    const char *what;
};

/* Reports all statements on `db` until store_progress_unwatch; `statements` must live as long. */
void store_progress_watch(sqlite3 *db, struct store_progress_statements *statements);
void store_progress_unwatch(sqlite3 *db);
