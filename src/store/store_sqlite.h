/* SPDX-License-Identifier: MIT */
/* The parts of an open store, for the files of the store only. */
#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "store/store.h"
#include "store/store_replica.h"
#include "store/store_space.h"
#include "store/store_sql.h"
#include "store/store_statement.h"
#include "store/store_thread.h"
#include "store/store_verify.h"

#define STORE_DATABASE "mgpu.db"

/* The highest id ever assigned; a damaged sequence must not lead to reused ids. */
#define STORE_LAST_JOB                                                                                       \
    "SELECT max((SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'jobs'),"                      \
    " (SELECT ifnull(max(id), 0) FROM jobs), (SELECT ifnull(max(job), 0) FROM events))"

struct store {
    char *dir;         // canonical path, without symbolic links
    int dirfd, lockfd; // -1: not open
    struct store_observer observer;
    struct store_space space;
    struct store_thread thread;
    struct store_verifier verifier;
    /* Used by the opener, then only by the store's thread. */
    sqlite3 *db;
    sqlite3_stmt *statements[STORE_STATEMENTS];
    int page_bytes;    // of its file, since it was created
    int wal_pages;     // in the write-ahead log since its last checkpoint
    int checkpoint_at; // no checkpoint below this number of pages
    uint64_t reserved; // job ids up to this one (store_ids.h)
    /* In a cluster (store_recording.h). */
    const struct store_log_writer *writer; // NULL: this store is the only one
    struct sqlite3_session *session;       // records the current transaction
    struct store_position position;        // after the last committed transaction
    bool is_appended;                      // the current transaction is, or may be, in the log
};

/* DIR/mgpu.db; the caller frees it. */
char *store_path(const struct store *store);

/* The name of the store in this database: 32 characters. */
int store_read_instance(sqlite3 *db, char instance[33], struct error *err);

int store_read_summary(sqlite3 *db, struct store_summary *ret, struct error *err);
