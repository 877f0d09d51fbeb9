/* SPDX-License-Identifier: MIT */
/*
 * The table `replica` has one row, the store's position. It is written in the transaction of each entry and
 * is not part of entries; it exists only in a cluster. The row `mark` of meta describes one file and is not
 * changed within entries either.
 *
 * Triggers and foreign keys guard the leader's tables when an entry is made. When it is applied they are off:
 * an entry contains their effects, as rows, and its rows are in no particular order. If a row differs from
 * what the entry expects, the stores differ, and nothing of the entry is applied.
 */
#define SQLITE_ENABLE_SESSION        1
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include "store/store_replica.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_changes.h"
#include "store/store_check.h"
#include "store/store_create.h"
#include "store/store_dir.h"
#include "store/store_recording.h"
#include "store/store_schema.h"
#include "store/store_sqlite.h"

#define DIVERGED         "diverged.db"
#define CHECKPOINT_PAGES 1000

bool store_replica_is_supported(void)
{
    return sqlite3_compileoption_used("ENABLE_SESSION") &&
           sqlite3_compileoption_used("ENABLE_PREUPDATE_HOOK");
}

/* --- recording, on the leader --- */

static int is_recorded(void *arg, const char *table)
{
    return strcmp(table, STORE_REPLICA) != 0;
}

int store_recording_begin(struct store *store, struct error *err)
{
    if (store->writer == NULL)
        return 0;
    int rc = sqlite3session_create(store->db, "main", &store->session);
    if (rc != SQLITE_OK)
        return store_sql_fail(err, store->db, rc, "session");
    sqlite3session_table_filter(store->session, is_recorded, NULL);
    rc = sqlite3session_attach(store->session, NULL);
    return rc == SQLITE_OK ? 0 : store_sql_fail(err, store->db, rc, "session");
}

void store_recording_end(struct store *store)
{
    if (store->session != NULL)
        sqlite3session_delete(store->session);
    store->session = NULL;
}

static int set_position(sqlite3 *db, struct store_position position, struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *update = NULL;
    int r = store_sql_prepare(
        db, "INSERT OR REPLACE INTO " STORE_REPLICA " (one, number, id) VALUES (1, ?1, ?2)", &update, err);
    if (r < 0)
        return r;
    (void)sqlite3_bind_int64(update, 1, (int64_t)position.number);
    (void)sqlite3_bind_int64(update, 2, (int64_t)position.id);
    return store_sql_finish(update, STORE_REPLICA, err);
}

static uint64_t random_id(void)
{
    uint64_t id = 0;
    while (getrandom(&id, sizeof(id), 0) != sizeof(id) || id == 0)
        continue;
    return id >> 1; // SQLite's integers are signed
}

static int append(struct store *store, const void *changes, int length, struct error *err)
{
    struct store_entry entry = {
        .before = store->position,
        .position = { store->position.number + 1, random_id() },
        .schema = (uint32_t)store_schema_version(),
        .changes = changes,
        .length = (size_t)length,
    };
    /* Local write first: a transaction that cannot be written here must not be in the log. */
    int r = set_position(store->db, entry.position, err);
    if (r < 0)
        return r;
    store->is_appended = true;
    r = store->writer->append(store->writer->arg, &entry, err);
    if (r < 0)
        return r;
    store->position = entry.position;
    return 0;
}

int store_recording_append(struct store *store, struct error *err)
{
    void *changes = NULL;
    int length = 0;
    store->is_appended = false;
    if (store->session == NULL)
        return 0;
    int rc = sqlite3session_changeset(store->session, &length, &changes);
    int r = rc == SQLITE_OK ? 0 : store_sql_fail(err, store->db, rc, "session");
    if (r == 0 && length > 0)
        r = append(store, changes, length, err);
    sqlite3_free(changes);
    return r;
}

/* --- the table --- */

static int has_table(sqlite3 *db, bool *ret, struct error *err)
{
    int64_t tables = 0;
    int r = store_sql_number(db,
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '" STORE_REPLICA "'", &tables,
        err);
    if (r == 0)
        *ret = tables > 0;
    return r;
}

int store_recording_position(sqlite3 *db, struct store_position *ret, struct error *err)
{
    int64_t number = 0, id = 0;
    bool is_there = false;
    int r = has_table(db, &is_there, err);
    if (r < 0)
        return r;
    if (!is_there) {
        (void)error_set(err, -ENXIO, "the store belongs to no cluster");
        return error_hint(err, "mgpud --migrate with --cluster puts the store of this machine into etcd");
    }
    r = store_sql_number(db, "SELECT number FROM " STORE_REPLICA " WHERE one = 1", &number, err);
    if (r == 0)
        r = store_sql_number(db, "SELECT id FROM " STORE_REPLICA " WHERE one = 1", &id, err);
    if (r == 0)
        *ret = (struct store_position){ (uint64_t)number, (uint64_t)id };
    return r;
}

int store_recording_open(struct store *store, struct error *err)
{
    bool is_there = false;
    if (store->writer != NULL)
        return store_recording_position(store->db, &store->position, err);
    int r = has_table(store->db, &is_there, err);
    if (r < 0 || !is_there)
        return r;
    (void)error_set(err, -EXDEV, "the store belongs to a cluster of several controllers");
    return error_hint(
        err, "start mgpud with --cluster; to make this the only controller again, add --leave-cluster");
}

/* --- a standby --- */

struct store_replica {
    struct store store; // only its directory and connection are used
    char instance[33];
};

struct store_position store_replica_position(const struct store_replica *replica)
{
    return replica->store.position;
}

const char *store_replica_instance(const struct store_replica *replica)
{
    return replica->instance;
}

static int set_mark(sqlite3 *db, enum store_mark mark, struct error *err)
{
    return store_sql_run_number(db, "UPDATE meta SET value = ?1 WHERE name = 'mark'", mark, err);
}

static int open_files(struct store *store, const char *dir, struct store_found *found, struct error *err)
{
    store->dirfd = store->lockfd = store->thread.eventfd = store->thread.prompt_eventfd = -1;
    int r = store_dir_open(dir, &store->dir, &store->dirfd, err);
    if (r == 0)
        r = store_dir_lock(store->dir, store->dirfd, &store->lockfd, err);
    if (r == 0)
        r = store_check(store, found, err);
    if (r < 0)
        return r;
    if (found->is_new)
        return error_set(err, -ENOENT, "there is no store in %s", store->dir);
    _cleanup_free_ char *path = store_path(store);
    return store_sql_open(path, STORE_WRITE, &store->db, err);
}

static int open_replica(struct store_replica *replica, const char *dir, struct error *err)
{
    struct store *store = &replica->store;
    struct store_found found = { 0 };
    int r = open_files(store, dir, &found, err);
    if (r == 0)
        r = store_recording_position(store->db, &store->position, err);
    if (r == 0)
        r = store_read_instance(store->db, replica->instance, err);
    if (r == 0)
        r = store_sql_run(store->db, "PRAGMA foreign_keys = OFF", err);
    if (r == 0 && sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL) != SQLITE_OK)
        r = error_set(err, -ENOTSUP, "SQLite cannot turn triggers off");
    if (r == 0)
        r = set_mark(store->db, STORE_IN_USE, err); // durable
    if (r == 0)
        r = store_sql_relax(store->db, err);
    if (r == 0)
        (void)sqlite3_wal_autocheckpoint(store->db, CHECKPOINT_PAGES);
    return r;
}

int store_replica_open(const char *dir, struct store_replica **ret, struct error *err)
{
    struct store_replica *replica = xcalloc(1, sizeof(*replica));
    int r = open_replica(replica, dir, err);
    if (r == 0) {
        *ret = replica;
        return 0;
    }
    store_replica_close(replica);
    return r;
}

void store_replica_close(struct store_replica *replica)
{
    if (replica == NULL)
        return;
    struct store *store = &replica->store;
    if (store->db != NULL)
        (void)set_mark(store->db, STORE_CLOSED, NULL);
    store_sql_closep(&store->db);
    closep(&store->lockfd);
    closep(&store->dirfd);
    free(store->dir);
    free(replica);
}

struct conflict {
    char table[64];
    int kind;
};

static int on_conflict(void *arg, int kind, sqlite3_changeset_iter *at)
{
    struct conflict *conflict = arg;
    const char *table = NULL;
    int columns = 0, operation = 0, is_indirect = 0;
    conflict->kind = kind;
    if (kind != SQLITE_CHANGESET_FOREIGN_KEY &&
        sqlite3changeset_op(at, &table, &columns, &operation, &is_indirect) == SQLITE_OK)
        (void)snprintf(conflict->table, sizeof(conflict->table), "%s", table);
    return SQLITE_CHANGESET_ABORT;
}

/* A newer mgpu changed the tables before it wrote this entry; the same steps lead to the same tables. */
static int follow_schema(sqlite3 *db, uint32_t schema, struct error *err)
{
    int64_t version = 0;
    int r = store_sql_number(db, "PRAGMA user_version", &version, err);
    if (r < 0 || version == (int64_t)schema)
        return r;
    if (schema > (uint32_t)store_schema_version()) {
        (void)error_set(err, -ENOTSUP,
            "the leader's mgpu is newer: its store has schema %u, this mgpud knows up to %d", schema,
            store_schema_version());
        return error_hint(err, "install the newer mgpu on this machine");
    }
    if ((int64_t)schema < version)
        return error_set(
            err, -EUCLEAN, "the store has schema %d, the log continues with %u", (int)version, schema);
    size_t steps = 0;
    while (steps < store_schema_n_steps && (uint32_t)store_schema_steps[steps].version <= schema)
        steps++;
    return store_schema_upgrade(db, store_schema_steps, steps, err);
}

static int apply(sqlite3 *db, const struct store_entry *entry, struct error *err)
{
    struct conflict conflict = { 0 };
    if (entry->length > INT32_MAX)
        return error_set(err, -EUCLEAN, "entry %" PRIu64 " is too large", entry->position.number);
    int r = store_changes_check(entry->changes, entry->length, err);
    if (r < 0)
        return r;
    /* SQLite only reads it. */
    int rc = sqlite3changeset_apply(
        db, (int)entry->length, (void *)(uintptr_t)entry->changes, NULL, on_conflict, &conflict);
    if (rc == SQLITE_ABORT || rc == SQLITE_CORRUPT || rc == SQLITE_SCHEMA)
        return error_set(err, -EUCLEAN, "entry %" PRIu64 " does not fit the table %s (conflict %d)",
            entry->position.number, conflict.table[0] != '\0' ? conflict.table : "?", conflict.kind);
    return rc == SQLITE_OK ? 0 : store_sql_fail(err, db, rc, "log entry");
}

static bool is_same(struct store_position one, struct store_position other)
{
    return one.number == other.number && one.id == other.id;
}

int store_replica_apply(struct store_replica *replica, const struct store_entry *entry, struct error *err)
{
    sqlite3 *db = replica->store.db;
    if (!is_same(entry->before, replica->store.position))
        return error_set(err, -ESTALE,
            "entry %" PRIu64 " of the log does not follow the last entry here, %" PRIu64,
            entry->position.number, replica->store.position.number);
    int r = follow_schema(db, entry->schema, err);
    if (r == 0)
        r = store_sql_run(db, "BEGIN IMMEDIATE", err);
    if (r < 0)
        return r;
    r = apply(db, entry, err);
    if (r == 0)
        r = set_position(db, entry->position, err);
    if (r == 0)
        r = store_sql_run(db, "COMMIT", err);
    if (r < 0 && !sqlite3_get_autocommit(db))
        (void)store_sql_run(db, "ROLLBACK", NULL);
    if (r < 0)
        return r;
    replica->store.position = entry->position;
    return 0;
}

/* --- joining and leaving --- */

static int change_membership(const char *dir, const char *sql, bool is_joining, struct error *err)
{
    struct store_replica *replica = xcalloc(1, sizeof(*replica));
    struct store *store = &replica->store;
    struct store_found found = { 0 };
    bool is_there = false;
    int r = open_files(store, dir, &found, err);
    if (r == -ENOENT && is_joining) {
        store_sql_closep(&store->db);
        r = store_create(store, err);
        _cleanup_free_ char *path = store_path(store);
        if (r == 0)
            r = store_sql_open(path, STORE_WRITE, &store->db, err);
    }
    if (r == 0)
        r = has_table(store->db, &is_there, err);
    if (r == 0 && is_there == is_joining)
        r = error_set(err, is_joining ? -EALREADY : -ENXIO,
            is_joining ? "the store in %s already belongs to a cluster"
                       : "the store in %s belongs to no cluster",
            store->dir);
    if (r == 0)
        r = store_sql_run(store->db, sql, err);
    if (r == 0 && is_joining)
        r = set_position(store->db, (struct store_position){ 1, random_id() }, err);
    if (r < 0) {
        store_sql_closep(&store->db); // leaves the mark unchanged
        store->db = NULL;
    }
    store_replica_close(replica);
    return r;
}

int store_replica_found(const char *dir, struct error *err)
{
    return change_membership(dir,
        "CREATE TABLE " STORE_REPLICA " (one INTEGER PRIMARY KEY CHECK (one = 1),"
        " number INTEGER NOT NULL, id INTEGER NOT NULL) STRICT",
        true, err);
}

int store_replica_found_again(const char *dir, struct error *err)
{
    struct store_replica *replica = NULL;
    int r = store_replica_open(dir, &replica, err);
    if (r == 0)
        r = set_position(replica->store.db,
            (struct store_position){ replica->store.position.number + 1, random_id() }, err);
    store_replica_close(replica);
    return r;
}

int store_replica_leave(const char *dir, struct error *err)
{
    return change_membership(dir, "DROP TABLE " STORE_REPLICA, false, err);
}

/* --- copies --- */

int store_replica_copy(const char *dir, const char *path, struct store_position *ret, struct error *err)
{
    _cleanup_free_ char *source = xasprintf("%s/%s", dir, STORE_DATABASE);
    _cleanup_database_ sqlite3 *from = NULL, *to = NULL;
    int r = store_sql_open(source, STORE_READ, &from, err);
    if (r < 0)
        return r;
    r = store_sql_open_plain(path, &to, err);
    if (r < 0)
        return r;
    r = store_sql_run(to, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF", err);
    if (r == 0)
        r = store_sql_copy(from, to, "copy", NULL, NULL, err);
    if (r == 0)
        r = store_sql_run(to, "PRAGMA journal_mode = DELETE", err);
    if (r == 0)
        r = set_mark(to, STORE_CLOSED, err);
    return r == 0 ? store_recording_position(to, ret, err) : r;
}

static int check_copy(const char *path, struct error *err)
{
    _cleanup_database_ sqlite3 *db = NULL;
    _cleanup_statement_ sqlite3_stmt *check = NULL;
    struct store_position position;
    int version = 0;
    int r = store_sql_open(path, STORE_READ, &db, err);
    if (r == 0)
        r = store_schema_check(db, path, &version, err);
    if (r == 0)
        r = store_recording_position(db, &position, err);
    if (r == 0)
        r = store_sql_prepare(db, "PRAGMA quick_check(1)", &check, err);
    if (r < 0)
        return r;
    const char *text = sqlite3_step(check) == SQLITE_ROW ? (const char *)sqlite3_column_text(check, 0) : NULL;
    if (text == NULL || strcmp(text, "ok") != 0)
        return error_set(err, -EUCLEAN, "%s is damaged: %.200s", path, text != NULL ? text : "unreadable");
    return 0;
}

/* The old file's log must be removed before the new file gets its name. */
static int put_in_place(const struct store *store, const char *name, struct error *err)
{
    static const char *const beside[] = { STORE_DATABASE "-wal", STORE_DATABASE "-shm",
        STORE_DATABASE "-journal" };
    if (renameat(store->dirfd, STORE_DATABASE, store->dirfd, DIVERGED) < 0 && errno != ENOENT)
        return error_set_errno(err, -errno, "cannot move %s/" STORE_DATABASE " away", store->dir);
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
        if (unlinkat(store->dirfd, beside[i], 0) < 0 && errno != ENOENT)
            return error_set_errno(err, -errno, "cannot remove %s/%s", store->dir, beside[i]);
    if (fsync(store->dirfd) < 0 || renameat(store->dirfd, name, store->dirfd, STORE_DATABASE) < 0 ||
        fsync(store->dirfd) < 0)
        return error_set_errno(err, -errno, "cannot install %s/%s", store->dir, name);
    return 0;
}

int store_replica_install(const char *dir, const char *name, struct error *err)
{
    struct store store = { .dirfd = -1, .lockfd = -1 };
    _cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
    int r = store_dir_open(dir, &store.dir, &store.dirfd, err);
    if (r == 0)
        r = store_dir_lock(store.dir, store.dirfd, &store.lockfd, err);
    if (r == 0)
        r = check_copy(path, err);
    if (r == 0)
        r = put_in_place(&store, name, err);
    closep(&store.lockfd);
    closep(&store.dirfd);
    free(store.dir);
    return r;
}
