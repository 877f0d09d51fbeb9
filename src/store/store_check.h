/* SPDX-License-Identifier: MIT */
/* Looks at what a start finds, before anything is written. */
#pragma once

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct store;
struct store_verification;

struct store_found {
    bool is_new;          // there is nothing: make a store
    bool was_closed;      // properly, by the daemon before
    bool is_log_gone;     // the log of a store in use is missing; its latest commits may be lost
    bool is_log_doubtful; // its last commits may be missing, though nothing shows it
    bool is_old_copy;     // ids and events later than this copy may have been given out
    int schema_version;   // meaningful unless it is new
};

/* -EUCLEAN: damaged, or there was a store and it is gone; -ENOTSUP: of a newer mgpu. With a hint. */
int store_check(struct store *store, struct store_found *ret, struct error *err);

/* What mgpud --fsck finds in jobs that have not ended, and in the GPUs that are booked: -EUCLEAN with its
 * first sentence. Jobs that have ended cost nothing. */
int store_fsck_open_jobs(sqlite3 *db, struct error *err);

/* All of it, on a file that nobody writes: 0 with *ret, whatever was found. -ECANCELED once `is_stopping` is
 * set; other failures say nothing about the store. */
int store_fsck_copy(
    const char *path, const atomic_bool *is_stopping, struct store_verification *ret, struct error *err);
