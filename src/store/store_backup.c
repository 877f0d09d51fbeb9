/* SPDX-License-Identifier: MIT */
/* The copy is made by SQLite's online backup and marked as a snapshot: when it is opened as a store, ids
 * continue above all that the original can have assigned. */
#include "store/store_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_schema.h"
#include "store/store_sql.h"
#include "store/store_sqlite.h"

#define FILES "backup_files"

static int add_files(sqlite3 *db, const struct store_backup_file *files, size_t n_files, struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *insert = NULL;
    int r = store_sql_run(
        db, "CREATE TABLE " FILES " (name TEXT PRIMARY KEY NOT NULL, bytes BLOB NOT NULL) STRICT", err);
    if (r == 0)
        r = store_sql_prepare(db, "INSERT INTO " FILES " VALUES (?1, ?2)", &insert, err);
    for (size_t i = 0; r == 0 && i < n_files; i++) {
        (void)sqlite3_bind_text(insert, 1, files[i].name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_blob64(
            insert, 2, files[i].length > 0 ? files[i].bytes : "", files[i].length, SQLITE_STATIC);
        r = store_sql_finish(insert, "backup", err);
    }
    return r;
}

static int sync_path(const char *path, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || fsync(fd) < 0 ? error_set_errno(err, -errno, "cannot sync %s", path) : 0;
}

int store_backup_write(const char *dir, const char *path, const struct store_backup_file *files,
    size_t n_files, const struct store_progress *progress, struct error *err)
{
    _cleanup_free_ char *source = xasprintf("%s/%s", dir, STORE_DATABASE);
    _cleanup_free_ char *mark = xasprintf(
        "PRAGMA journal_mode = DELETE; UPDATE meta SET value = %d WHERE name = 'mark'", STORE_SNAPSHOT);
    _cleanup_database_ sqlite3 *from = NULL, *to = NULL;
    int version = 0;
    int r = store_sql_open(source, STORE_READ, &from, err);
    if (r == 0)
        r = store_schema_check(from, source, &version, err);
    if (r == 0)
        r = store_sql_open_plain(path, &to, err);
    if (r == 0) // the one sync is at the end
        r = store_sql_run(to, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF", err);
    if (r == 0)
        r = store_sql_copy(from, to, "backup", progress, NULL, err);
    if (r == 0)
        r = store_sql_run(to, mark, err);
    if (r == 0)
        r = add_files(to, files, n_files, err);
    store_sql_closep(&to);
    to = NULL;
    return r == 0 ? sync_path(path, err) : r;
}

/* --- back --- */

static int check(sqlite3 *db, const char *path, struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *integrity = NULL;
    int64_t mark = -1, tables = 0;
    int version = 0;
    int r = store_schema_check(db, path, &version, err);
    if (r == 0)
        r = store_sql_number(db, "SELECT value FROM meta WHERE name = 'mark'", &mark, err);
    if (r == 0)
        r = store_sql_number(db,
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '" FILES "'", &tables, err);
    if (r == 0 && (mark != STORE_SNAPSHOT || tables != 1))
        r = error_set(err, -EBADMSG, "it is a store, and not a backup made by mgpu backup");
    if (r == 0)
        r = store_sql_prepare(db, "PRAGMA integrity_check(1)", &integrity, err);
    if (r < 0)
        return r;
    int rc = sqlite3_step(integrity);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(integrity, 0) : NULL;
    if (text == NULL || strcmp(text, "ok") != 0)
        return error_set(err, -EUCLEAN, "%s is damaged: %.200s", path, text != NULL ? text : "unreadable");
    return 0;
}

static int visit_files(sqlite3 *db,
    int (*visit)(void *arg, const struct store_backup_file *file, struct error *err), void *arg,
    struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *select = NULL;
    int r = store_sql_prepare(db, "SELECT name, bytes FROM " FILES " ORDER BY name", &select, err);
    while (r == 0) {
        int rc = sqlite3_step(select);
        if (rc == SQLITE_DONE)
            return 0;
        if (rc != SQLITE_ROW)
            return store_sql_fail(err, db, rc, "backup");
        const struct store_backup_file file = {
            .name = (const char *)sqlite3_column_text(select, 0),
            .bytes = sqlite3_column_blob(select, 1),
            .length = (size_t)sqlite3_column_bytes(select, 1),
        };
        r = visit(arg, &file, err);
    }
    return r;
}

int store_backup_unpack(const char *path,
    int (*visit)(void *arg, const struct store_backup_file *file, struct error *err), void *arg,
    const struct store_progress *progress, uint64_t *ret_jobs, struct error *err)
{
    struct store_progress_statements checks = { progress, "checking the backup" };
    _cleanup_database_ sqlite3 *db = NULL;
    int64_t jobs = 0;
    int r = store_sql_open(path, STORE_WRITE, &db, err);
    if (r == 0)
        store_progress_watch(db, &checks);
    if (r == 0)
        r = check(db, path, err);
    if (r == 0)
        r = visit_files(db, visit, arg, err);
    if (r == 0)
        r = store_sql_number(db, "SELECT count(*) FROM jobs", &jobs, err);
    if (r == 0)
        r = store_sql_run(db, "DROP TABLE " FILES "; PRAGMA journal_mode = DELETE", err);
    if (r == 0)
        *ret_jobs = (uint64_t)jobs;
    store_sql_closep(&db);
    db = NULL;
    return r == 0 ? sync_path(path, err) : r;
}
