/* SPDX-License-Identifier: MIT */
/*
 * Opening and closing. A start checks before it writes (store_check), creates or migrates the tables, and
 * then begins a new epoch in one transaction; only after that does the store's thread own the connection.
 *
 * DIR/  lock          held while the store is open
 *       mgpu.db       tables; -wal and -shm beside it are SQLite's
 *       reserve       disk blocks for when the disk is full (store_space.c)
 *       backup/       snapshots (store_snapshot.c)
 */
#include "store/store_sqlite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_check.h"
#include "store/store_create.h"
#include "store/store_dir.h"
#include "store/store_ids.h"
#include "store/store_recording.h"
#include "store/store_schema.h"
#include "store/store_snapshot.h"
#include "store/store_write.h"

char *store_path(const struct store *store)
{
    return xasprintf("%s/%s", store->dir, STORE_DATABASE);
}

static int on_log_grew(void *arg, sqlite3 *db, const char *name, int pages)
{
    ((struct store *)arg)->wal_pages = pages;
    return SQLITE_OK;
}

static int mark_in_use(struct store *store, struct error *err)
{
    return store_sql_run_number(
        store->db, "UPDATE meta SET value = ?1 WHERE name = 'mark'", STORE_IN_USE, err);
}

/* In a cluster the mark is this file's own, and no part of the log; and the log, which was applied to its
 * end, proves that the file is complete. */
static int begin_leading(struct store *store, struct store_found *found, struct error *err)
{
    int r = store_recording_open(store, err);
    if (r < 0 || store->writer == NULL)
        return r;
    found->is_old_copy = found->is_log_gone = found->is_log_doubtful = false;
    return mark_in_use(store, err);
}

static int begin_epoch(struct store *store, void *arg, struct error *err)
{
    int r = store_ids_begin(store, arg, err);
    if (r == 0)
        r = store_sql_run(store->db, "UPDATE meta SET value = value + 1 WHERE name = 'epoch'", err);
    if (r == 0 && store->writer == NULL)
        r = mark_in_use(store, err);
    if (r == 0)
        r = store_sql_run_number(store->db,
            "DELETE FROM submit_keys WHERE created_ms < (SELECT max(created_ms) FROM submit_keys) - ?1",
            STORE_KEY_LIFE_MS, err);
    return r;
}

int store_read_instance(sqlite3 *db, char instance[33], struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *select = NULL;
    int r = store_sql_prepare(db, "SELECT value FROM meta WHERE name = 'instance'", &select, err);
    if (r < 0)
        return r;
    int rc = sqlite3_step(select);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(select, 0) : NULL;
    if (text == NULL || strlen(text) != 32)
        return error_set(err, -EUCLEAN, "database: the store has no instance id");
    memcpy(instance, text, 33);
    return 0;
}

int store_read_summary(sqlite3 *db, struct store_summary *ret, struct error *err)
{
    struct store_summary summary = { 0 };
    const struct {
        const char *sql;
        uint64_t *number;
    } rows[] = {
        { "SELECT value FROM meta WHERE name = 'epoch'", &summary.epoch },
        { STORE_LAST_JOB, &summary.last_job },
        { "SELECT max(value, (SELECT ifnull(max(seq), 0) FROM events)) FROM meta WHERE name = 'event_floor'",
            &summary.last_event },
        { "SELECT count(*) FROM jobs", &summary.jobs },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t number = 0;
        int r = store_sql_number(db, rows[i].sql, &number, err);
        if (r < 0)
            return r;
        *rows[i].number = (uint64_t)number;
    }
    int r = store_read_instance(db, summary.instance, err);
    if (r == 0)
        *ret = summary;
    return r;
}

/* -wal and -shm are made with the mode of the database file. */
static int make_private(const struct store *store, struct error *err)
{
    if (fchmodat(store->dirfd, STORE_DATABASE, 0600, 0) < 0)
        return error_set_errno(
            err, -errno, "cannot set the permissions of %s/%s", store->dir, STORE_DATABASE);
    return 0;
}

static int migrate(struct store *store, const struct store_found *found, struct error *err)
{
    if (found->is_new || found->schema_version == store_schema_version())
        return 0;
    char what[60];
    struct store_progress_statements upgrade = { &store->observer.progress, what };
    (void)snprintf(what, sizeof(what), "upgrading the store to schema %d", store_schema_version());
    int r = store_snapshot_take(store, err);
    store_progress_watch(store->db, &upgrade);
    if (r == 0)
        r = store_schema_upgrade(store->db, store_schema_steps, store_schema_n_steps, err);
    store_progress_unwatch(store->db);
    return r < 0 ? error_wrap(err, "cannot upgrade %s/%s", store->dir, STORE_DATABASE) : 0;
}

/* After the upgrade of the schema, and before decisions based on the tables. */
static int check_open_jobs(const struct store *store, struct error *err)
{
    int r = store_fsck_open_jobs(store->db, err);
    if (r == -EUCLEAN)
        (void)store_snapshot_hint(store->dirfd, store->dir, err);
    return r;
}

static int open_database(struct store *store, struct store_found *found, struct error *err)
{
    int r = store_check(store, found, err);
    if (r == 0 && found->is_new)
        r = store_create(store, err);
    if (r == 0)
        r = make_private(store, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = store_path(store);
    r = store_sql_open(path, STORE_WRITE, &store->db, err);
    if (r < 0)
        return r;
    (void)sqlite3_wal_hook(store->db, on_log_grew, store);
    r = store->writer != NULL ? store_sql_relax(store->db, err) : 0;
    if (r == 0)
        r = begin_leading(store, found, err);
    if (r == 0)
        r = migrate(store, found, err);
    if (r == 0)
        r = check_open_jobs(store, err);
    if (r == 0)
        r = store_statement_prepare(store->db, store->statements, err);
    if (r == 0)
        r = store_write_transaction(store, begin_epoch, found, err);
    return r < 0 ? error_wrap(err, "%s", path) : 0;
}

static int open_store(
    struct store *store, const char *dir, struct store_summary *ret_summary, struct error *err)
{
    struct store_found found = { 0 };
    int r = store_dir_open(dir, &store->dir, &store->dirfd, err);
    if (r == 0)
        r = store_dir_lock(store->dir, store->dirfd, &store->lockfd, err);
    if (r < 0)
        return r;
    store_space_open(store);
    r = open_database(store, &found, err);
    if (r < 0)
        return r;
    /* The mark, the epoch and the reserved ids must be valid even if the log is lost. */
    r = store_ids_write_through(store, err);
    if (r == 0)
        r = store_read_summary(store->db, ret_summary, err);
    ret_summary->is_old_copy = found.is_old_copy;
    if (r == 0)
        r = store_thread_start(store, err);
    if (r < 0 || !found.is_log_gone)
        return r;
    struct error warning;
    (void)error_set(&warning, -EUCLEAN,
        "%s/%s was in use and has no write-ahead log: another program closed it, or it is a copy without the "
        "latest changes; new ids begin at %" PRIu64,
        store->dir, STORE_DATABASE, ret_summary->last_job + 1);
    store_thread_warn(store, &warning);
    return 0;
}

int store_open(const char *dir, const struct store_observer *observer, struct store **ret,
    struct store_summary *ret_summary, struct error *err)
{
    return store_open_leading(dir, observer, NULL, ret, ret_summary, err);
}

int store_open_leading(const char *dir, const struct store_observer *observer,
    const struct store_log_writer *writer, struct store **ret, struct store_summary *ret_summary,
    struct error *err)
{
    struct store *store = xcalloc(1, sizeof(*store));
    struct store_summary summary = { 0 };
    store->dirfd = store->lockfd = store->thread.eventfd = store->thread.prompt_eventfd = -1;
    store->observer = *observer;
    store->writer = writer;
    int r = open_store(store, dir, &summary, err);
    if (r < 0) {
        if (r == -EIO || r == -ENOSPC)
            r = store_space_is_out(store, err) ? -ENOSPC : r;
        store_close(store);
        return r;
    }
    *ret = store;
    *ret_summary = summary;
    return 0;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    bool was_open = store->thread.eventfd >= 0;
    store_thread_stop(store);
    store_statement_finalize(store->statements);
    bool is_sound = was_open && store->lockfd >= 0 && store->thread.health == STORE_WORKS &&
                    store_sql_run_number(
                        store->db, "UPDATE meta SET value = ?1 WHERE name = 'mark'", STORE_CLOSED, NULL) == 0;
    /* After any failure the log stays unchanged for the next start. */
    if (!is_sound && store->db != NULL)
        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    store_sql_closep(&store->db);
    closep(&store->lockfd);
    closep(&store->dirfd);
    free(store->dir);
    free(store);
}
