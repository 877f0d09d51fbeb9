/* SPDX-License-Identifier: MIT */
/* The write-ahead log as a crash left it, read before SQLite recovers from it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define STORE_LOG       "mgpu.db-wal"
#define STORE_LOG_INDEX "mgpu.db-shm"

struct store_log {
    bool has_log;     // there are frames
    bool has_index;   // SQLite's index is there, which a killed process leaves behind
    bool is_complete; // the index vouches for the log: every commit that was ever acknowledged is in it
};

/* -EUCLEAN when commits that were synced cannot be read any more; the hint says how to go on without them.
 * Nothing is written. Only while no other process has the database open. */
int store_log_check(int dirfd, const char *dir, struct store_log *ret, struct error *err);
