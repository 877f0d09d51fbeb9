/* SPDX-License-Identifier: MIT */
/*
 * A damaged store is never replaced by an empty one: a new store is created only without any trace of an
 * older one, and since it is renamed into place complete (store_create.c), a file without mgpu's tables is
 * damaged.
 *
 * SQLite treats a missing write-ahead log as empty. So meta's `mark`, in the database file itself, records
 * that a log belongs to it. If the log is missing but its index (-shm) exists, the log was removed: its
 * commits are lost, and the store is refused. If both are missing, either another program closed the file
 * properly after a crash, or this is a copy made without its log: the store is used, but ids that the
 * original may have assigned are never assigned again. A log with a damaged frame is refused (store_log.c);
 * one that may have lost its end, which cannot be proved, costs the reserved ids.
 */
#include "store/store_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/store_dir.h"
#include "store/store_log.h"
#include "store/store_schema.h"
#include "store/store_snapshot.h"
#include "store/store_sqlite.h"

#define JOURNAL STORE_DATABASE "-journal"

/* SQLite's check reads the whole file: seconds for each gigabyte. A larger file that was closed properly is
 * not read at each start. */
#define CHECK_ALWAYS_BYTES (64 << 20)

static int damaged(const struct store *store, struct error *err, const char *what)
{
    (void)error_set(err, -EUCLEAN, "%s/%s %s", store->dir, STORE_DATABASE, what);
    return store_snapshot_hint(store->dirfd, store->dir, err);
}

/* The disk or its file system fails: the contents of the file are unknown, and may be intact. */
static int unreadable(const struct store *store, struct error *err)
{
    char why[200];
    (void)snprintf(why, sizeof(why), "%.199s", err != NULL ? err->message : "");
    (void)error_set(err, -EIO, "%s/%s cannot be read: %s", store->dir, STORE_DATABASE, why);
    return error_hint(err, "look for a failing disk (dmesg); the store is unchanged");
}

static int check_missing(const struct store *store, struct store_found *found, struct error *err)
{
    _cleanup_free_ char *snapshot = store_snapshot_newest(store->dirfd);
    if (snapshot != NULL)
        return damaged(store, err, "is missing, although snapshots exist");
    if (store_dir_size(store->dirfd, STORE_LOG) > 0)
        return damaged(store, err, "is missing, although its write-ahead log exists");
    found->is_new = true;
    return 0;
}

static int quick_check(sqlite3 *db, struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *check = NULL;
    int r = store_sql_prepare(db, "PRAGMA quick_check(1)", &check, err);
    if (r < 0)
        return r;
    errno = 0;
    int rc = sqlite3_step(check);
    if (rc != SQLITE_ROW)
        return store_sql_fail(err, db, rc, "quick_check");
    const char *text = (const char *)sqlite3_column_text(check, 0);
    /* An unreadable page is reported as a row of the result. */
    if (errno == EIO && (text == NULL || strcmp(text, "ok") != 0))
        return error_set(err, -EIO, "disk I/O error: %s", strerror(EIO));
    if (text != NULL && strcmp(text, "ok") == 0)
        return 0;
    return error_set(err, -EUCLEAN, "%.200s", text != NULL ? text : "quick_check returned nothing");
}

static int check_mark(
    const struct store *store, const struct store_log *log, struct store_found *found, struct error *err)
{
    int64_t mark = 0;
    int r = store_sql_number(store->db, "SELECT value FROM meta WHERE name = 'mark'", &mark, err);
    if (r < 0)
        return r;
    found->was_closed = mark == STORE_CLOSED;
    found->is_log_gone = mark == STORE_IN_USE && !log->has_log;
    found->is_log_doubtful = mark == STORE_IN_USE && log->has_log && !log->is_complete;
    found->is_old_copy = mark == STORE_SNAPSHOT || found->is_log_gone;
    if (!found->is_log_gone || !log->has_index)
        return 0;
    (void)error_set(err, -EUCLEAN,
        "%s/%s exists, but its write-ahead log %s with the latest changes is missing", store->dir,
        STORE_DATABASE, STORE_LOG);
    return error_hint(
        err, "restore the log; or accept the loss of those changes: rm %s/%s", store->dir, STORE_LOG_INDEX);
}

static int check_open(struct store *store, struct store_found *found, struct error *err)
{
    struct store_log log;
    /* Before SQLite opens the log: it creates an index if there is none, and drops unreadable frames. */
    int r = store_log_check(store->dirfd, store->dir, &log, err);
    if (r < 0)
        return r;
    /* A start that died while it switched the file to a log left a journal, which only a writer can undo. */
    bool has_journal = store_dir_size(store->dirfd, JOURNAL) > 0;
    _cleanup_free_ char *path = store_path(store);
    r = store_sql_open(path, has_journal ? STORE_WRITE : STORE_READ, &store->db, err);
    if (r == 0)
        r = store_schema_check(store->db, path, &found->schema_version, err);
    if (r == 0)
        r = check_mark(store, &log, found, err);
    bool is_small = store_dir_size(store->dirfd, STORE_DATABASE) <= CHECK_ALWAYS_BYTES;
    if (r == 0 && (is_small || !found->was_closed))
        r = quick_check(store->db, err);
    store_sql_closep(&store->db);
    store->db = NULL;
    return r;
}

int store_check(struct store *store, struct store_found *ret, struct error *err)
{
    struct store_found found = { 0 };
    off_t size = store_dir_size(store->dirfd, STORE_DATABASE);
    int r;
    if (size < 0)
        r = check_missing(store, &found, err);
    else if (size == 0)
        r = damaged(store, err, "is empty (0 bytes)");
    else
        r = check_open(store, &found, err);
    if (r == 0) {
        *ret = found;
        return 0;
    }
    if ((r == -EIO || r == -EACCES || r == -ENOSPC) && store_space_is_out(store, err))
        return -ENOSPC;
    if (r == -EIO)
        return unreadable(store, err);
    bool is_damage = r == -EUCLEAN || r == -ENOENT;
    if (is_damage && err != NULL && err->hint[0] == '\0') {
        char why[200];
        (void)snprintf(why, sizeof(why), "%.199s", err->message);
        (void)error_set(err, -EUCLEAN, "%s/%s is damaged: %s", store->dir, STORE_DATABASE, why);
        (void)store_snapshot_hint(store->dirfd, store->dir, err);
    }
    return is_damage ? -EUCLEAN : r;
}
