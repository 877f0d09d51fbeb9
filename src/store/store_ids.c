/* SPDX-License-Identifier: MIT */
/*
 * Ids are reserved in blocks: meta's `reserved` is in the database file itself, not only in the write-ahead
 * log, before an id above it is assigned. If the end of the log is uncertain, a start continues above the
 * block; after a clean end, and after a crash with a complete log, no id is skipped. If a reader in another
 * process prevents the checkpoint, ids are assigned all the same: a duplicate would then require both that
 * reader and a damaged log.
 */
#include "store/store_ids.h"

#include <errno.h>

#include "store/store_check.h"
#include "store/store_sqlite.h"
#include "store/store_write.h"

static int run_all(sqlite3 *db, const char *const *texts, size_t count, int64_t number, struct error *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = store_sql_run_number(db, texts[i], number, err);
    return r;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HAVE_SEQUENCE                                                                                        \
    "INSERT INTO sqlite_sequence (name, seq) SELECT 'jobs', 0 WHERE NOT EXISTS"                              \
    " (SELECT 1 FROM sqlite_sequence WHERE name = 'jobs')"

int store_ids_skip(sqlite3 *db, uint64_t gap, struct error *err)
{
    static const char *const texts[] = {
        HAVE_SEQUENCE,
        "UPDATE sqlite_sequence SET seq = seq + ?1 WHERE name = 'jobs'",
        ("UPDATE meta SET value = ?1 + max(value, (SELECT ifnull(max(seq), 0) FROM events))"
         " WHERE name = 'event_floor'"),
        "UPDATE meta SET value = value + ?1 WHERE name = 'epoch'",
    };
    return run_all(db, texts, COUNT(texts), (int64_t)gap, err);
}

/* The epoch is in the database file since the start (store_sqlite.c). */
static int skip_of_log(sqlite3 *db, struct error *err)
{
    static const char *const texts[] = {
        HAVE_SEQUENCE,
        "UPDATE sqlite_sequence SET seq = max(seq, (SELECT ifnull(max(value), 0) FROM meta"
        " WHERE name = 'reserved')) WHERE name = 'jobs'",
    };
    return run_all(db, texts, COUNT(texts), RESTORE_GAP, err);
}

static int reserve(struct store *store, int64_t reserved, struct error *err)
{
    return store_sql_run_number(store->db,
        "INSERT INTO meta (name, value) VALUES ('reserved', ?1)"
        " ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
        reserved, err);
}

int store_ids_begin(struct store *store, const struct store_found *found, struct error *err)
{
    int64_t last = 0;
    int r = found->is_old_copy ? store_ids_skip(store->db, RESTORE_GAP, err) : 0;
    if (r == 0 && found->is_log_doubtful)
        r = skip_of_log(store->db, err);
    if (r == 0)
        r = store_sql_number(store->db, STORE_LAST_JOB, &last, err);
    if (r == 0)
        r = reserve(store, last + STORE_ID_BLOCK, err);
    /* In a cluster no id is published before the log contains its job. */
    if (r == 0)
        store->reserved = store->writer != NULL ? UINT64_MAX : (uint64_t)last + STORE_ID_BLOCK;
    return r;
}

static int run_reserve(struct store *store, void *arg, struct error *err)
{
    const int64_t *reserved = arg;
    return reserve(store, *reserved, err);
}

int store_ids_reserve(struct store *store, uint64_t highest, struct error *err)
{
    if (highest <= store->reserved)
        return 0;
    int64_t reserved = (int64_t)highest + STORE_ID_BLOCK;
    int r = store_write_transaction(store, run_reserve, &reserved, err);
    if (r == 0)
        r = store_ids_write_through(store, err);
    if (r < 0)
        return error_wrap(err, "job ids");
    store->reserved = (uint64_t)reserved;
    return 0;
}

int store_ids_write_through(struct store *store, struct error *err)
{
    int log_pages = 0, done_pages = 0;
    int rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log_pages, &done_pages);
    if (rc == SQLITE_OK && log_pages == done_pages)
        store->wal_pages = 0;
    if (rc == SQLITE_OK || store_sql_code(store->db, rc) == -ENOSPC || (rc & 0xff) == SQLITE_BUSY)
        return 0;
    return store_sql_fail(err, store->db, rc, "checkpoint");
}
