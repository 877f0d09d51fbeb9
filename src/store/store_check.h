/* SPDX-License-Identifier: MIT */
/* Checks a store before anything is written. */
#pragma once

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

struct store;
struct store_progress;
struct store_verification;

struct store_found {
    bool is_new;          // there is no store yet: create one
    bool was_closed;      // cleanly, by the previous daemon
    bool is_log_gone;     // the write-ahead log of a store in use is missing; its latest commits may be lost
    bool is_log_doubtful; // its last commits may be missing, without proof
    bool is_old_copy;     // the original may have used higher ids and events than this copy has
    int schema_version;   // valid unless is_new
};

/* -EUCLEAN: damaged, or missing although it existed before; -ENOTSUP: created by a newer mgpu. With a
 * hint. */
int store_check(struct store *store, struct store_found *ret, struct error *err);

/* The checks of mgpud --fsck for jobs that have not ended and for booked GPUs: -EUCLEAN with the first
 * finding. The cost does not depend on the number of ended jobs. */
int store_fsck_open_jobs(sqlite3 *db, struct error *err);

/* The complete check, of a file that no process writes: 0 with *ret, whatever the findings. -ECANCELED once
 * `is_stopping` is set; other failures do not concern the store. */
int store_fsck_copy(const char *path, const atomic_bool *is_stopping, const struct store_progress *progress,
    struct store_verification *ret, struct error *err);
