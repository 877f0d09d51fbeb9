/* SPDX-License-Identifier: MIT */
/*
 * A released upgrade step is never changed; a change of the tables is a new step. The version is in the file
 * header (user_version) and is written in the same transaction as the step.
 *
 * The database itself enforces, whatever the program does: ids and event numbers only grow and are never
 * reused; events are never changed, and removed only after their job, which has ended; a GPU is held
 * exclusively by one attempt, or in distinct slots by several whose shares do not exceed the whole. The enums
 * of job/state.h are stored as numbers: new values are added at the end.
 */
#include "store/store_schema.h"

#include <assert.h>
#include <errno.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/record.h"
#include "job/ask.h"
#include "job/state.h"
#include "store/store_functions.h"
#include "store/store_sql.h"

static_assert(JOB_DONE == 5 && EVENT_ALLOCATED == 1 && EVENT_ENDED == 5 && EVENT_CLUSTER == 13 &&
                  EVENT_IDLE == 14 && EVENT_SUSPENDED == 15 && EVENT_SIGNALLED == 17 &&
                  EVENT_STEP_STARTED == 18 && EVENT_STEP_ENDED == 19 && EVENT_PARK == 20 &&
                  EVENT_UNPARKED == 24 && EVENT_RECONCILED == 25 && END_EXIT == 1 && END_CANCELLED == 3 &&
                  END_REBOOT == 7 && END_DEPENDENCY == 10 && END_OOM == 11 && END_GPU_FAULT == 12 &&
                  END_IDLE_TIMEOUT == 13 && END_RELEASED == 14 && END_NODE_LOST == 15 && END_GPU_OOM == 16 &&
                  END_GPU_MEM == 17 && END_BUDGET == 18,
    "these numbers are on disk");

static const char tables[] =
    "CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value ANY NOT NULL) STRICT, WITHOUT ROWID;"

    "CREATE TABLE jobs ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " uid INTEGER NOT NULL, gid INTEGER NOT NULL, priority INTEGER NOT NULL, gpus INTEGER NOT NULL,"
    " gpu_mem INTEGER NOT NULL, gpu_ids TEXT, name TEXT NOT NULL, summary TEXT NOT NULL,"
    " submitted_ms INTEGER NOT NULL,"
    " state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),"
    " attempt INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
    " token INTEGER NOT NULL, node TEXT, boot_id TEXT, grants BLOB, log_path TEXT,"
    " \"end\" INTEGER NOT NULL, exit_code INTEGER NOT NULL, signal INTEGER NOT NULL,"
    " stopped_by INTEGER NOT NULL, run_ms INTEGER NOT NULL, cpu_ms INTEGER NOT NULL,"
    " max_rss INTEGER NOT NULL, log_bytes INTEGER NOT NULL, text TEXT) STRICT;"
    "CREATE INDEX jobs_open ON jobs (id) WHERE state <> 5;"
    "CREATE INDEX jobs_ended ON jobs (ended_ms) WHERE state = 5;"
    "CREATE TRIGGER jobs_ids_grow BEFORE INSERT ON jobs"
    " WHEN NEW.id <= (SELECT seq FROM sqlite_sequence WHERE name = 'jobs')"
    " BEGIN SELECT RAISE(ABORT, 'this job id was given out before'); END;"

    "CREATE TABLE specs (job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,"
    " spec BLOB NOT NULL) STRICT;"

    "CREATE TABLE submit_keys (key_hash INTEGER PRIMARY KEY, uid INTEGER NOT NULL,"
    " job INTEGER NOT NULL, spec_hash INTEGER NOT NULL, created_ms INTEGER NOT NULL) STRICT;"

    "CREATE TABLE attempts (job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,"
    " attempt INTEGER NOT NULL, node TEXT NOT NULL, boot_id TEXT, token INTEGER NOT NULL,"
    " allocated_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, over_ms INTEGER NOT NULL,"
    " last_event INTEGER NOT NULL, PRIMARY KEY (job, attempt)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE gpu_alloc (node TEXT NOT NULL, uuid TEXT NOT NULL, slot INTEGER NOT NULL,"
    " job INTEGER NOT NULL REFERENCES jobs (id), attempt INTEGER NOT NULL, gpu INTEGER NOT NULL,"
    " memory INTEGER NOT NULL, exclusive INTEGER NOT NULL CHECK (exclusive = (slot = 0)),"
    " PRIMARY KEY (node, uuid, slot)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX gpu_alloc_job ON gpu_alloc (job);"
    "CREATE TRIGGER gpu_alloc_exclusive BEFORE INSERT ON gpu_alloc"
    " WHEN EXISTS (SELECT 1 FROM gpu_alloc WHERE node = NEW.node AND uuid = NEW.uuid"
    "  AND (exclusive OR NEW.exclusive))"
    " BEGIN SELECT RAISE(ABORT, 'this GPU is held exclusively'); END;"
    "CREATE TRIGGER gpu_alloc_no_change BEFORE UPDATE ON gpu_alloc"
    " BEGIN SELECT RAISE(ABORT, 'a booked GPU is given back, not altered'); END;"

    "CREATE TABLE events (seq INTEGER PRIMARY KEY, job INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " type INTEGER NOT NULL CHECK (type BETWEEN 0 AND 5), wall_ms INTEGER NOT NULL,"
    " event BLOB NOT NULL) STRICT;"
    "CREATE INDEX events_job ON events (job);"
    "CREATE TRIGGER events_grow BEFORE INSERT ON events WHEN NEW.seq <= (SELECT max(seq) FROM events)"
    " BEGIN SELECT RAISE(ABORT, 'events are numbered upwards'); END;"
    "CREATE TRIGGER events_no_change BEFORE UPDATE ON events"
    " BEGIN SELECT RAISE(ABORT, 'events are never altered'); END;"
    "CREATE TRIGGER events_no_removal BEFORE DELETE ON events"
    " BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;"

    "CREATE TABLE tokens (id INTEGER PRIMARY KEY AUTOINCREMENT, uid INTEGER NOT NULL,"
    " gid INTEGER NOT NULL, name TEXT, hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),"
    " created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL) STRICT;";

/*
 * The request of a job becomes one record, built by ask_of() below from its former columns. A stop gets a
 * reason, which before this step was always a cancel (3). A CHECK cannot be altered, so the events move to a
 * new table, which allows more types than exist.
 */
static const char scheduler[] =
    "ALTER TABLE jobs ADD COLUMN ask BLOB NOT NULL DEFAULT x'';"
    "UPDATE jobs SET ask = ask_of(priority, gpus, gpu_mem, gpu_ids);"
    "ALTER TABLE jobs DROP COLUMN priority;"
    "ALTER TABLE jobs DROP COLUMN gpus;"
    "ALTER TABLE jobs DROP COLUMN gpu_mem;"
    "ALTER TABLE jobs DROP COLUMN gpu_ids;"
    "ALTER TABLE jobs ADD COLUMN hold INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_job INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_index INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_left TEXT;"
    "ALTER TABLE jobs ADD COLUMN array_open INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_failed INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN preemptions INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN is_requeued INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN stop_reason INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN cpu_milli INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN memory INTEGER NOT NULL DEFAULT 0;"
    "UPDATE jobs SET stop_reason = 3 WHERE id IN (SELECT job FROM events WHERE type = 3);"
    "CREATE INDEX jobs_array ON jobs (array_job, array_index) WHERE array_job <> 0;"

    "ALTER TABLE gpu_alloc ADD COLUMN share INTEGER NOT NULL DEFAULT 0 CHECK (share BETWEEN 0 AND 1000);"
    "CREATE TRIGGER gpu_alloc_shares BEFORE INSERT ON gpu_alloc"
    " WHEN NEW.share + (SELECT ifnull(sum(share), 0) FROM gpu_alloc"
    "  WHERE node = NEW.node AND uuid = NEW.uuid) > 1000"
    " BEGIN SELECT RAISE(ABORT, 'the shares of this GPU are more than the whole'); END;"

    "CREATE TABLE events_new (seq INTEGER PRIMARY KEY, job INTEGER NOT NULL, attempt INTEGER NOT NULL,"
    " type INTEGER NOT NULL CHECK (type BETWEEN 0 AND 99), wall_ms INTEGER NOT NULL,"
    " event BLOB NOT NULL, CHECK ((job = 0) = (type = 13))) STRICT;"
    "INSERT INTO events_new (seq, job, attempt, type, wall_ms, event)"
    " SELECT seq, job, attempt, type, wall_ms, event FROM events ORDER BY seq;"
    "DROP TABLE events;"
    "ALTER TABLE events_new RENAME TO events;"
    "CREATE INDEX events_job ON events (job);"
    "CREATE TRIGGER events_grow BEFORE INSERT ON events WHEN NEW.seq <= (SELECT max(seq) FROM events)"
    " BEGIN SELECT RAISE(ABORT, 'events are numbered upwards'); END;"
    "CREATE TRIGGER events_no_change BEFORE UPDATE ON events"
    " BEGIN SELECT RAISE(ABORT, 'events are never altered'); END;"
    "CREATE TRIGGER events_no_removal BEFORE DELETE ON events"
    " BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;"

    "CREATE TABLE cluster_state (kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,"
    " PRIMARY KEY (kind, key)) STRICT, WITHOUT ROWID;";

/*
 * How the latest attempt of a job used its GPUs, and the consequences of not using them. Ended jobs have a
 * narrow row in addition to the wide one, so that years can be summed up; they are removed in the end, and
 * the sums of their days remain.
 */
static const char usage[] =
    "ALTER TABLE jobs ADD COLUMN usage BLOB;"
    "ALTER TABLE jobs ADD COLUMN idle_level INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN idle_told_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN queued_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN retry_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN requeue_cause INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN suspended_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN terms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN nodes BLOB;"
    "ALTER TABLE jobs ADD COLUMN node_lease_ms INTEGER NOT NULL DEFAULT 0;"

    "DROP INDEX jobs_ended;" // `ended` is in that order
    "CREATE TABLE ended (job INTEGER NOT NULL, uid INTEGER NOT NULL,"
    " gid INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
    " outcome INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 2),"
    " is_array INTEGER NOT NULL, wait_ms INTEGER, held_ms INTEGER NOT NULL,"
    " measured_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL, node TEXT,"
    " name TEXT NOT NULL, PRIMARY KEY (ended_ms, job)) STRICT, WITHOUT ROWID;"
    "INSERT INTO ended (" STORE_ENDED_COLUMNS ") " STORE_ENDED_OF("j.gid",
        "true") ";CREATE TABLE kept_days (day INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, "
                "node TEXT NOT NULL, jobs INTEGER NOT NULL, held_ms INTEGER NOT NULL, measured_ms INTEGER "
                "NOT NULL, used_ms INTEGER NOT NULL, PRIMARY KEY (day, uid, gid, node)) STRICT, WITHOUT "
                "ROWID;CREATE TABLE join_tokens (id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL "
                "CHECK (length(hash) = 32), uid INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms "
                "INTEGER NOT NULL, node TEXT, is_replacing INTEGER NOT NULL, used_by BLOB CHECK "
                "(length(used_by) = 32)) STRICT;CREATE TABLE nodes (name TEXT PRIMARY KEY NOT NULL, key_hash "
                "BLOB NOT NULL UNIQUE CHECK (length(key_hash) = 32), joined_ms INTEGER NOT NULL) STRICT, "
                "WITHOUT ROWID;CREATE INDEX submit_keys_job ON submit_keys (job);CREATE TRIGGER "
                "jobs_no_removal BEFORE DELETE ON jobs WHEN OLD.state <> 5 BEGIN SELECT RAISE(ABORT, 'only "
                "ended jobs are removed'); END;DROP TRIGGER events_no_removal;CREATE TRIGGER "
                "events_no_removal BEFORE DELETE ON events WHEN OLD.job = 0 OR EXISTS (SELECT 1 FROM jobs "
                "WHERE id = OLD.job) BEGIN SELECT RAISE(ABORT, 'events are removed only after their job'); "
                "END;";

/* The terms of a stop survive a restart. */
static const char stops[] = "ALTER TABLE jobs ADD COLUMN stop_terms INTEGER NOT NULL DEFAULT 0;"
                            "ALTER TABLE jobs ADD COLUMN stop_grace_ms INTEGER NOT NULL DEFAULT 0;";

/* Requeues at time limits and after losses have separate limits; before, they were counted together. */
static const char requeues[] = "ALTER TABLE jobs ADD COLUMN limit_requeues INTEGER NOT NULL DEFAULT 0;"
                               "ALTER TABLE jobs ADD COLUMN loss_requeues INTEGER NOT NULL DEFAULT 0;"
                               "UPDATE jobs SET"
                               " limit_requeues = (SELECT count(*) FROM events WHERE job = id AND type = 10"
                               "  AND requeue_cause(event) = 2),"
                               " loss_requeues = (SELECT count(*) FROM events WHERE job = id AND type = 10"
                               "  AND requeue_cause(event) = 4) WHERE restarts > 0;";

/* The data for the return of a parked job: struct job_park. */
static const char parks[] = "ALTER TABLE jobs ADD COLUMN park BLOB;";

/* Tokens with fewer permissions than their user, and the jobs submitted with each. 15: all scopes. */
static const char scopes[] = "ALTER TABLE tokens ADD COLUMN scopes INTEGER NOT NULL DEFAULT 15;"
                             "ALTER TABLE tokens ADD COLUMN max_gpu_ms INTEGER NOT NULL DEFAULT 0;"
                             "ALTER TABLE jobs ADD COLUMN api_token INTEGER NOT NULL DEFAULT 0;";

/* How the elements of an array ended, counted by its own record: 12 is `member`, 1 exit, 3 cancelled. */
static const char elements[] =
    "ALTER TABLE jobs ADD COLUMN array_cancelled INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_done INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN array_exit_max INTEGER NOT NULL DEFAULT 0;"
    "UPDATE jobs SET"
    " array_cancelled = (SELECT count(*) FROM events WHERE job = id AND type = 12 AND event_end(event) = 3),"
    " array_done = (SELECT count(*) FROM events WHERE job = id AND type = 12 AND event_end(event) = 1"
    "  AND event_exit_code(event) = 0),"
    " array_exit_max = (SELECT ifnull(max(event_exit_code(event)), 0) FROM events WHERE job = id AND type = "
    "12)"
    " WHERE array_left IS NOT NULL;";

/* The group that a job counts for, plus 1; 0: `gid`. */
static const char groups[] = "ALTER TABLE jobs ADD COLUMN account INTEGER NOT NULL DEFAULT 0;";

/* What each event `allocated` has too. Records may be in dense form from here on, which earlier programs do
 * not read. */
static const char dense[] = "ALTER TABLE attempts DROP COLUMN boot_id;";

/* Where the output of the latest requeued attempt is: 10 is `requeued`, 2 `started`. */
static const char earlier[] =
    "ALTER TABLE jobs ADD COLUMN earlier BLOB;"
    "UPDATE jobs SET earlier ="
    " (SELECT earlier_attempt(e.event, a.node, s.event) FROM events e"
    "  JOIN attempts a ON a.job = e.job AND a.attempt = e.attempt"
    "  LEFT JOIN events s ON s.job = e.job AND s.attempt = e.attempt AND s.type = 2"
    "  WHERE e.job = id AND e.type = 10 AND earlier_attempt(e.event, a.node, s.event) IS NOT NULL"
    "  ORDER BY e.seq DESC LIMIT 1)"
    " WHERE restarts + preemptions > 0;";

const struct schema_step store_schema_steps[] = {
    { 1, tables },
    { 2, scheduler },
    { 3, usage },
    { 4, stops },
    { 5, requeues },
    { 6, parks },
    { 7, scopes },
    { 8, elements },
    { 9, groups },
    { 10, dense },
    { 11, earlier },
};
const size_t store_schema_n_steps = sizeof(store_schema_steps) / sizeof(store_schema_steps[0]);

int store_schema_version(void)
{
    return store_schema_steps[store_schema_n_steps - 1].version;
}

/* ask_of(priority, gpus, gpu_mem, gpu_ids): the record of a request, for step 2. */
static void ask_of(sqlite3_context *context, int count, sqlite3_value **values)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    _cleanup_(job_ask_clear) struct job_ask ask = {
        .priority = (int32_t)sqlite3_value_int64(values[0]),
        .gpus = (uint32_t)sqlite3_value_int64(values[1]),
        .gpu_mem = (uint64_t)sqlite3_value_int64(values[2]),
        .gpu_ids = xstrdup((const char *)sqlite3_value_text(values[3])),
    };
    record_encode(&job_ask_record, &ask, &bytes);
    sqlite3_result_blob64(context, bytes.bytes, bytes.length, SQLITE_TRANSIENT);
}

static int run_step(sqlite3 *db, const struct schema_step *step, struct error *err)
{
    _cleanup_buffer_ struct buffer sql = { 0 };
    buffer_printf(&sql, "BEGIN IMMEDIATE; %s PRAGMA user_version = %d; COMMIT", step->sql, step->version);
    int r = store_sql_run(db, buffer_text(&sql), err);
    if (r == 0)
        return 0;
    if (!sqlite3_get_autocommit(db))
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return error_wrap(err, "schema %d", step->version);
}

int store_schema_upgrade(sqlite3 *db, const struct schema_step *steps, size_t count, struct error *err)
{
    int64_t version = 0;
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int rc = sqlite3_create_function_v2(db, "ask_of", 4, flags, NULL, ask_of, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return store_sql_fail(err, db, rc, "schema");
    int r = store_functions_add(db, err);
    if (r == 0)
        r = store_sql_number(db, "PRAGMA user_version", &version, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (steps[i].version > version)
            r = run_step(db, &steps[i], err);
    return r;
}

static int insert_meta(sqlite3 *db, const char *instance, struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *insert = NULL;
    int r = store_sql_prepare(db,
        "INSERT INTO meta (name, value) VALUES ('instance', ?1), ('created_ms', ?2), ('epoch', 0),"
        " ('mark', 0), ('event_floor', 0)",
        &insert, err);
    if (r < 0)
        return r;
    (void)sqlite3_bind_text(insert, 1, instance, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(insert, 2, clock_wall_ms());
    return store_sql_finish(insert, "meta", err);
}

int store_schema_create(sqlite3 *db, const char *instance, struct error *err)
{
    _cleanup_buffer_ struct buffer sql = { 0 };
    buffer_printf(&sql, "PRAGMA application_id = %d", STORE_APPLICATION_ID);
    int r = store_sql_run(db, buffer_text(&sql), err);
    if (r == 0)
        r = store_schema_upgrade(db, store_schema_steps, store_schema_n_steps, err);
    return r == 0 ? insert_meta(db, instance, err) : r;
}

int store_schema_check(sqlite3 *db, const char *path, int *ret_version, struct error *err)
{
    int64_t application = 0, version = 0;
    int r = store_sql_number(db, "PRAGMA application_id", &application, err);
    if (r == 0)
        r = store_sql_number(db, "PRAGMA user_version", &version, err);
    if (r < 0)
        return error_wrap(err, "%s", path);
    if (application != STORE_APPLICATION_ID || version < 1)
        return error_set(err, -EUCLEAN, "%s is not a store of mgpu", path);
    if (version > store_schema_version()) {
        (void)error_set(err, -ENOTSUP,
            "%s was made by a newer mgpu: it has schema %d, this mgpud knows up to %d", path, (int)version,
            store_schema_version());
        return error_hint(err, "install the newer mgpu again, or use another --state-dir");
    }
    *ret_version = (int)version;
    return 0;
}
