/* SPDX-License-Identifier: MIT */
#include "store/store_progress.h"

#include <stddef.h>

#define STEPS 10000 // of SQLite's machine between two calls, some milliseconds

void store_progress_report(
    const struct store_progress *progress, const char *what, uint64_t done, uint64_t total)
{
    if (progress != NULL && progress->report != NULL)
        progress->report(progress->arg, what, done, total);
}

static int on_steps(void *arg)
{
    const struct store_progress_statements *statements = arg;
    store_progress_report(statements->progress, statements->what, 0, 0);
    return 0;
}

void store_progress_watch(sqlite3 *db, struct store_progress_statements *statements)
{
    sqlite3_progress_handler(db, STEPS, on_steps, statements);
}

void store_progress_unwatch(sqlite3 *db)
{
    sqlite3_progress_handler(db, 0, NULL, NULL);
}
