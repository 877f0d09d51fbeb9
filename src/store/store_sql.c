/* SPDX-License-Identifier: MIT */
/*
 * Every connection is used by one thread at a time, so SQLite's own mutexes are disabled. So are automatic
 * checkpoints (wal_autocheckpoint 0), which would run inside a commit while a client waits for it. The
 * store's thread runs them when idle.
 */
#include "store/store_sql.h"

#include <errno.h>
#include <string.h>

#include "store/store_functions.h"

#define COPY_PAGES 128 // between two checks for progress reports and a stop

#define TEXT(number)  #number
#define VALUE(number) TEXT(number)

static const char settings[] = "PRAGMA foreign_keys = ON;"
                               "PRAGMA trusted_schema = OFF;"
                               "PRAGMA cell_size_check = ON;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA secure_delete = FAST;"
                               "PRAGMA cache_size = -" VALUE(STORE_CACHE_KIB);

static const char write_settings[] = "PRAGMA journal_mode = WAL;"
                                     "PRAGMA synchronous = FULL;"
                                     "PRAGMA wal_autocheckpoint = 0;"
                                     "PRAGMA journal_size_limit = " VALUE(STORE_WAL_KEEP_BYTES);

static const struct {
    int primary; // result code without its extension
    int code;
} codes[] = {
    { SQLITE_FULL, -ENOSPC },
    { SQLITE_ERROR, -EUCLEAN }, // mgpu's statements are correct, so the tables must have been changed
    { SQLITE_CORRUPT, -EUCLEAN },
    { SQLITE_NOTADB, -EUCLEAN },
    { SQLITE_BUSY, -EBUSY },
    { SQLITE_LOCKED, -EBUSY },
    { SQLITE_CONSTRAINT, -EEXIST },
    { SQLITE_READONLY, -EROFS },
    { SQLITE_CANTOPEN, -EACCES },
    { SQLITE_PERM, -EACCES },
    { SQLITE_NOMEM, -ENOMEM },
};

/* Of an I/O error. SQLite does not note it when a COMMIT fails; see store_sql_finish(). */
static int cause_of(sqlite3 *db)
{
    int noted = db != NULL ? sqlite3_system_errno(db) : 0;
    return noted != 0 ? noted : errno;
}

int store_sql_code(sqlite3 *db, int rc)
{
    if (rc == SQLITE_IOERR_SHORT_READ)
        return -EUCLEAN; // the file ends too early
    if ((rc & 0xff) == SQLITE_IOERR && cause_of(db) == EROFS)
        return -EROFS;
    /* An exhausted quota is treated as a full disk, but SQLite only handles ENOSPC. */
    if (rc == SQLITE_IOERR_WRITE && db != NULL && sqlite3_system_errno(db) == EDQUOT)
        return -ENOSPC;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].primary == (rc & 0xff))
            return codes[i].code;
    return -EIO;
}

int store_sql_fail(struct error *err, sqlite3 *db, int rc, const char *what)
{
    int code = store_sql_code(db, rc), cause = cause_of(db);
    const char *text = db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    if ((rc & 0xff) == SQLITE_IOERR && cause != 0)
        return error_set(err, code, "%s: %s: %s", what, text, strerror(cause));
    return error_set(err, code, "%s: %s", what, text);
}

static int open_file(const char *path, int flags, sqlite3 **ret, struct error *err)
{
    _cleanup_database_ sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(
        path, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc != SQLITE_OK)
        return store_sql_fail(err, db, rc, path);
    *ret = take_ptr(db);
    return 0;
}

int store_sql_open_plain(const char *path, sqlite3 **ret, struct error *err)
{
    return open_file(path, SQLITE_OPEN_READWRITE, ret, err);
}

int store_sql_open(const char *path, enum store_access access, sqlite3 **ret, struct error *err)
{
    int flags = access == STORE_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    _cleanup_database_ sqlite3 *db = NULL;
    int r = open_file(path, flags, &db, err);
    if (r < 0)
        return r;
    (void)sqlite3_busy_timeout(db, STORE_BUSY_MS);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    r = store_sql_run(db, settings, err);
    if (r == 0 && access == STORE_WRITE)
        r = store_sql_run(db, write_settings, err);
    if (r == 0)
        r = store_functions_add(db, err);
    if (r < 0)
        return error_wrap(err, "%s", path);
    *ret = take_ptr(db);
    return 0;
}

int store_sql_relax(sqlite3 *db, struct error *err)
{
    return store_sql_run(db, "PRAGMA synchronous = NORMAL", err);
}

void store_sql_closep(sqlite3 **db)
{
    int saved = errno;
    (void)sqlite3_close(*db);
    errno = saved;
}

/* A transaction around all steps prevents SQLite from restarting the copy after each commit. */
int store_sql_copy(sqlite3 *from, sqlite3 *to, const char *what, const struct store_progress *progress,
    const atomic_bool *is_stopping, struct error *err)
{
    int64_t tables = 0;
    int r = store_sql_run(from, "BEGIN", err);
    if (r == 0)
        r = store_sql_number(from, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (r < 0)
        return r;
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int rc = backup != NULL ? SQLITE_OK : sqlite3_errcode(to);
    while (rc == SQLITE_OK && (is_stopping == NULL || !atomic_load(is_stopping))) {
        rc = sqlite3_backup_step(backup, COPY_PAGES);
        int pages = sqlite3_backup_pagecount(backup);
        store_progress_report(progress, "copying the store",
            (uint64_t)(pages - sqlite3_backup_remaining(backup)), (uint64_t)pages);
    }
    int end = sqlite3_backup_finish(backup);
    (void)store_sql_run(from, "ROLLBACK", NULL);
    if (rc == SQLITE_OK)
        return error_set(err, -ECANCELED, "the store closes");
    if (rc == SQLITE_DONE && end == SQLITE_OK)
        return 0;
    return store_sql_fail(err, to, rc != SQLITE_DONE ? rc : end, what);
}

int store_sql_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct error *err)
{
    int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
    return rc == SQLITE_OK ? 0 : store_sql_fail(err, db, rc, "database");
}

void store_sql_finalizep(sqlite3_stmt **statement)
{
    (void)sqlite3_finalize(*statement);
}

int store_sql_run(sqlite3 *db, const char *sql, struct error *err)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : store_sql_fail(err, db, rc, "database");
}

int store_sql_run_number(sqlite3 *db, const char *sql, int64_t number, struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *statement = NULL;
    int r = store_sql_prepare(db, sql, &statement, err);
    if (r < 0)
        return r;
    (void)sqlite3_bind_int64(statement, 1, number);
    return store_sql_finish(statement, "database", err);
}

int store_sql_finish(sqlite3_stmt *statement, const char *what, struct error *err)
{
    errno = 0;
    int rc = sqlite3_step(statement);
    int r = rc == SQLITE_DONE || rc == SQLITE_ROW
                ? 0
                : store_sql_fail(err, sqlite3_db_handle(statement), rc, what);
    (void)sqlite3_reset(statement);
    return r;
}

int store_sql_number(sqlite3 *db, const char *sql, int64_t *ret, struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *statement = NULL;
    int r = store_sql_prepare(db, sql, &statement, err);
    if (r < 0)
        return r;
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE)
        return error_set(err, -ENOENT, "database: a value is missing");
    if (rc != SQLITE_ROW)
        return store_sql_fail(err, db, rc, "database");
    *ret = sqlite3_column_int64(statement, 0);
    return 0;
}

char *store_sql_text(sqlite3_stmt *statement, int column)
{
    return xstrdup((const char *)sqlite3_column_text(statement, column));
}
