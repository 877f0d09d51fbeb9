/* SPDX-License-Identifier: MIT */
/* Checks the write-ahead log left by a crash before SQLite recovers from it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define STORE_LOG       "mgpu.db-wal"
#define STORE_LOG_INDEX "mgpu.db-shm"

struct store_log {
    bool has_log;     // it has frames
    bool has_index;   // SQLite's index exists, as after a killed process
    bool is_complete; // confirmed by the index: the log contains every acknowledged commit
};

/* -EUCLEAN if synced commits cannot be read any more; the hint says how to continue without them. Writes
 * nothing. Only allowed while no other process has the database open. */
int store_log_check(int dirfd, const char *dir, struct store_log *ret, struct error *err);
