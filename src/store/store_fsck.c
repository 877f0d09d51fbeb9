/* SPDX-License-Identifier: MIT */
/*
 * mgpud --fsck, and the part of it that runs at each start: open jobs and their GPUs. A running daemon checks
 * copies completely (store_verify.c). Everything is read in one transaction of a read-only connection, so it
 * works beside a running daemon on a consistent view of the store. Events and jobs are walked together in
 * order of job id: at any time one job is in memory, folded from its events, next to its row.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "job/cluster_change.h"
#include "store/store_check.h"
#include "store/store_dir.h"
#include "store/store_log.h"
#include "store/store_row.h"
#include "store/store_schema.h"
#include "store/store_snapshot.h"
#include "store/store_sqlite.h"
#include "store/store_statement.h"

#define FINDING_SIZE        512
#define STEPS_BETWEEN_LOOKS 10000 // of SQLite's machine, some milliseconds

struct fsck {
    sqlite3 *db;
    void (*report)(void *arg, const char *sentence);
    void *arg;
    int findings, file_findings;                          // including those of SQLite's own check
    sqlite3_stmt *jobs, *events, *spec, *gpus, *attempts; // jobs and events: cursors over the whole tables
    int jobs_rc, events_rc;
};

/* The expected attempts row of one attempt. */
struct attempt {
    char *node;
    uint64_t token;
    int64_t allocated_ms, started_ms, over_ms;
    uint32_t last_event;
};

struct attempts {
    struct attempt *items; // attempt N is items[N - 1]
    size_t count;
};

static void find(struct fsck *fsck, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void find(struct fsck *fsck, const char *format, ...)
{
    char sentence[FINDING_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    fsck->findings++;
    fsck->report(fsck->arg, sentence);
}

static void clear_attempts(struct attempts *attempts)
{
    for (size_t i = 0; i < attempts->count; i++)
        free(attempts->items[i].node);
    free(attempts->items);
    *attempts = (struct attempts){ 0 };
}

/* Called for events that job_apply has accepted, so an attempt is always the next or the latest. */
static void fold_attempt(struct attempts *attempts, const struct job_event *event)
{
    if (event->type == EVENT_ALLOCATED) {
        attempts->items = xreallocarray(attempts->items, attempts->count + 1, sizeof(*attempts->items));
        attempts->items[attempts->count++] = (struct attempt){
            .node = xstrdup(event->node),
            .token = event->token,
            .allocated_ms = event->wall_ms,
            .last_event = EVENT_ALLOCATED,
        };
        return;
    }
    bool is_over =
        event->type == EVENT_RETURNED || event->type == EVENT_REQUEUED || event->type == EVENT_ENDED;
    if (attempts->count == 0 || (!is_over && event->type != EVENT_STARTED))
        return;
    struct attempt *attempt = &attempts->items[attempts->count - 1];
    if (attempt->over_ms != 0)
        return;
    attempt->last_event = event->type;
    *(is_over ? &attempt->over_ms : &attempt->started_ms) = event->wall_ms;
}

/* --- the two cursors --- */

static uint64_t current_job(sqlite3_stmt *cursor, int rc)
{
    return rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(cursor, 0) : UINT64_MAX;
}

static void check_columns(struct fsck *fsck, const struct job_event *event)
{
    uint64_t seq = (uint64_t)sqlite3_column_int64(fsck->events, 1);
    if (event->seq != seq || event->job != (uint64_t)sqlite3_column_int64(fsck->events, 0) ||
        event->attempt != (uint64_t)sqlite3_column_int64(fsck->events, 2) ||
        event->type != (uint64_t)sqlite3_column_int64(fsck->events, 3) ||
        event->wall_ms != sqlite3_column_int64(fsck->events, 4))
        find(fsck, "event %" PRIu64 ": its columns differ from its record", seq);
}

/* Changes of the cluster are not folded, because the store does not know their results. */
static void check_cluster_event(struct fsck *fsck, const struct job_event *event)
{
    struct error err;
    if (event->type != EVENT_CLUSTER || event->change.count != 1)
        find(fsck, "event %" PRIu64 " has no job and is not a change of the cluster", event->seq);
    else if (cluster_change_validate(event->change.items, &err) < 0)
        find(fsck, "event %" PRIu64 ": %s", event->seq, err.message);
}

/* Reads the events of `id` from the cursor and folds them into `job`, as far as they are readable. */
static bool fold_events(struct fsck *fsck, uint64_t id, struct job *job, struct attempts *attempts)
{
    bool is_whole = true;
    for (; current_job(fsck->events, fsck->events_rc) == id; fsck->events_rc = sqlite3_step(fsck->events)) {
        struct job_event event;
        struct error err;
        const void *bytes = sqlite3_column_blob(fsck->events, 5);
        if (record_decode(
                &job_event_record, bytes, (size_t)sqlite3_column_bytes(fsck->events, 5), &event, &err) < 0) {
            find(fsck, "event %" PRId64 ": %s", (int64_t)sqlite3_column_int64(fsck->events, 1), err.message);
            is_whole = false;
            continue;
        }
        check_columns(fsck, &event);
        if (id == 0)
            check_cluster_event(fsck, &event);
        if (job != NULL && is_whole && job_apply(job, &event, &err) < 0) {
            find(fsck, "event %" PRIu64 " is impossible: %s", event.seq, err.message);
            is_whole = false;
        } else if (job != NULL && is_whole) {
            fold_attempt(attempts, &event);
        }
        job_event_clear(&event);
    }
    return is_whole && job != NULL;
}

static struct job *new_job(struct fsck *fsck, uint64_t id)
{
    struct job *job = NULL;
    struct job_spec spec;
    struct error err;
    (void)sqlite3_bind_int64(fsck->spec, 1, (int64_t)id);
    if (sqlite3_step(fsck->spec) != SQLITE_ROW) {
        find(fsck, "job %" PRIu64 " has no specification", id);
    } else if (record_decode(&job_spec_record, sqlite3_column_blob(fsck->spec, 0),
                   (size_t)sqlite3_column_bytes(fsck->spec, 0), &spec, &err) < 0) {
        find(fsck, "specification of job %" PRIu64 ": %s", id, err.message);
    } else {
        job = job_new(id, &spec);
        job_spec_clear(&spec);
    }
    (void)sqlite3_reset(fsck->spec);
    return job;
}

/* --- one job --- */

static bool is_grant(const struct job *job, sqlite3_stmt *row)
{
    _cleanup_free_ char *node = store_sql_text(row, 0);
    _cleanup_free_ char *uuid = store_sql_text(row, 1);
    const struct gpu_grant *grants = job->grants.items;
    for (size_t i = 0; i < job->grants.count; i++)
        if (text_equal(grants[i].uuid, uuid) && grants[i].slot == sqlite3_column_int64(row, 2) &&
            text_equal(grants[i].node != NULL ? grants[i].node : job->node, node))
            return job->attempt == sqlite3_column_int64(row, 3) &&
                   grants[i].index == sqlite3_column_int64(row, 4) &&
                   grants[i].memory == (uint64_t)sqlite3_column_int64(row, 5) &&
                   (grants[i].slot == 0) == sqlite3_column_int64(row, 6) &&
                   grants[i].share == sqlite3_column_int64(row, 7);
    return false;
}

/* The primary key makes rows distinct: if as many rows match as there are grants, all match. */
static void check_gpus(struct fsck *fsck, const struct job *job)
{
    size_t rows = 0, wanted = job_holds_gpus(job) ? job->grants.count : 0;
    bool are_right = true;
    (void)sqlite3_bind_int64(fsck->gpus, 1, (int64_t)job->id);
    for (; sqlite3_step(fsck->gpus) == SQLITE_ROW; rows++)
        are_right = are_right && is_grant(job, fsck->gpus);
    (void)sqlite3_reset(fsck->gpus);
    if (rows != wanted)
        find(fsck, "job %" PRIu64 " (%s) has %zu GPUs allocated; according to its events, %zu", job->id,
            job_state_name(job->state), rows, wanted);
    else if (!are_right)
        find(fsck, "job %" PRIu64 " has other GPUs allocated than its events record", job->id);
}

static bool is_same_attempt(const struct attempt *attempt, sqlite3_stmt *row)
{
    _cleanup_free_ char *node = store_sql_text(row, 1);
    return text_equal(attempt->node, node) && attempt->token == (uint64_t)sqlite3_column_int64(row, 2) &&
           attempt->allocated_ms == sqlite3_column_int64(row, 3) &&
           attempt->started_ms == sqlite3_column_int64(row, 4) &&
           attempt->over_ms == sqlite3_column_int64(row, 5) &&
           attempt->last_event == sqlite3_column_int64(row, 6);
}

static void check_attempts(struct fsck *fsck, uint64_t id, const struct attempts *attempts)
{
    size_t rows = 0;
    (void)sqlite3_bind_int64(fsck->attempts, 1, (int64_t)id);
    for (; sqlite3_step(fsck->attempts) == SQLITE_ROW; rows++)
        if (rows < attempts->count && (sqlite3_column_int64(fsck->attempts, 0) != (int64_t)rows + 1 ||
                                          !is_same_attempt(&attempts->items[rows], fsck->attempts)))
            find(fsck, "attempt %zu of job %" PRIu64 " differs from its events", rows + 1, id);
    (void)sqlite3_reset(fsck->attempts);
    if (rows != attempts->count)
        find(fsck, "job %" PRIu64 " has %zu attempts in the table; according to its events, %zu", id, rows,
            attempts->count);
}

static void compare_row(struct fsck *fsck, const struct job *folded)
{
    _cleanup_(job_freep) struct job *row = NULL;
    struct error err;
    if (store_row_read(fsck->jobs, &row, &err) < 0) {
        find(fsck, "%s", err.message);
        return;
    }
    const char *column = store_row_difference(folded, row);
    if (column != NULL)
        find(fsck, "job %" PRIu64 ": '%s' differs from its events", folded->id, column);
    if (job_invariant(folded, &err) < 0)
        find(fsck, "%s", err.message);
}

static void check_job(struct fsck *fsck, uint64_t id)
{
    if (id == 0) {
        (void)fold_events(fsck, id, NULL, NULL);
        return;
    }
    bool has_row = current_job(fsck->jobs, fsck->jobs_rc) == id;
    bool has_events = current_job(fsck->events, fsck->events_rc) == id;
    if (!has_row)
        find(fsck, "job %" PRIu64 " has events but no row", id);
    if (!has_events)
        find(fsck, "job %" PRIu64 " has a row but no events", id);
    _cleanup_(job_freep) struct job *job = has_row && has_events ? new_job(fsck, id) : NULL;
    _cleanup_(clear_attempts) struct attempts attempts = { 0 };
    if (fold_events(fsck, id, job, &attempts)) {
        compare_row(fsck, job);
        check_gpus(fsck, job);
        check_attempts(fsck, id, &attempts);
    }
    if (has_row)
        fsck->jobs_rc = sqlite3_step(fsck->jobs);
}

/* --- the whole --- */

static int check_jobs(struct fsck *fsck, struct error *err)
{
    fsck->jobs_rc = sqlite3_step(fsck->jobs);
    fsck->events_rc = sqlite3_step(fsck->events);
    while (fsck->jobs_rc == SQLITE_ROW || fsck->events_rc == SQLITE_ROW) {
        uint64_t job = current_job(fsck->jobs, fsck->jobs_rc);
        uint64_t event_job = current_job(fsck->events, fsck->events_rc);
        check_job(fsck, job < event_job ? job : event_job);
    }
    int rc = fsck->jobs_rc != SQLITE_DONE ? fsck->jobs_rc : fsck->events_rc;
    return rc == SQLITE_DONE ? 0 : store_sql_fail(err, fsck->db, rc, "fsck");
}

static int check_integrity(struct fsck *fsck, struct error *err)
{
    _cleanup_statement_ sqlite3_stmt *check = NULL;
    int r = store_sql_prepare(fsck->db, "PRAGMA integrity_check", &check, err);
    if (r < 0)
        return r;
    int rc;
    while ((rc = sqlite3_step(check)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(check, 0);
        if (text == NULL || strcmp(text, "ok") != 0)
            find(fsck, "integrity: %s", text != NULL ? text : "no answer");
    }
    return rc == SQLITE_DONE ? 0 : store_sql_fail(err, fsck->db, rc, "integrity check");
}

/* Each query counts rows that must not exist. */
static int check_totals(struct fsck *fsck, struct error *err)
{
    static const struct {
        const char *sql, *finding;
    } rows[] = {
        { "SELECT count(*) FROM jobs WHERE id > (SELECT ifnull(max(seq), 0) FROM sqlite_sequence"
          " WHERE name = 'jobs')",
            "jobs have an id above the highest assigned" },
        { "SELECT count(*) FROM pragma_foreign_key_check", "rows belong to a job that does not exist" },
        { "SELECT count(*) FROM submit_keys AS k WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = k.job)",
            "submit keys belong to a job that does not exist" },
        { "SELECT count(*) FROM jobs AS e WHERE e.array_job <> 0 AND NOT EXISTS (SELECT 1 FROM jobs AS a"
          " WHERE a.id = e.array_job AND a.array_left IS NOT NULL)",
            "jobs are elements of an array that does not exist" },
        { "SELECT count(*) FROM jobs AS a WHERE a.array_left IS NOT NULL AND a.array_open <>"
          " (SELECT count(*) FROM jobs AS e WHERE e.array_job = a.id AND e.array_job <> 0 AND e.state <> 5)",
            "arrays have a wrong count of open elements" },
        { "SELECT count(*) FROM (SELECT node, uuid FROM gpu_alloc GROUP BY node, uuid HAVING sum(share) > "
          "1000)",
            "GPUs have shares above 1000 thousandths" },
        { "SELECT count(*) FROM events WHERE seq < 1", "events have no sequence number" },
        { "SELECT count(*) FROM (SELECT " STORE_ENDED_COLUMNS
          " FROM ended EXCEPT " STORE_ENDED_OF(STORE_GROUP, "true") ")",
            "rows of ended jobs differ from the jobs" },
        { "SELECT count(*) FROM jobs WHERE state = 5 AND id NOT IN (SELECT job FROM ended)",
            "ended jobs have no row in ended" },
        { "SELECT count(*) FROM kept_days WHERE jobs < 1 OR held_ms < measured_ms OR measured_ms < used_ms"
          " OR used_ms < 0",
            "days of removed jobs have impossible totals" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t count = 0;
        int r = store_sql_number(fsck->db, rows[i].sql, &count, err);
        if (r < 0)
            return r;
        if (count > 0)
            find(fsck, "%" PRId64 " %s", count, rows[i].finding);
    }
    return 0;
}

#define OPEN_JOBS "SELECT id FROM jobs WHERE state <> 5"

static int prepare(struct fsck *fsck, bool is_open_only, struct error *err)
{
    _cleanup_free_ char *jobs =
        store_row_select_sql(is_open_only ? "WHERE state <> 5 ORDER BY id" : "ORDER BY id");
    const struct {
        sqlite3_stmt **statement;
        const char *sql;
    } rows[] = {
        { &fsck->jobs, jobs },
        { &fsck->events, is_open_only ? "SELECT job, seq, attempt, type, wall_ms, event FROM events"
                                        " WHERE job IN (" OPEN_JOBS ") ORDER BY job, seq"
                                      : "SELECT job, seq, attempt, type, wall_ms, event FROM events"
                                        " ORDER BY job, seq" },
        { &fsck->spec, "SELECT spec FROM specs WHERE job = " STORE_SPEC_OF("?1") },
        { &fsck->gpus,
            "SELECT node, uuid, slot, attempt, gpu, memory, exclusive, share FROM gpu_alloc WHERE job = ?1" },
        { &fsck->attempts, "SELECT attempt, node, token, allocated_ms, started_ms, over_ms, last_event"
                           " FROM attempts WHERE job = ?1 ORDER BY attempt" },
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
        r = store_sql_prepare(fsck->db, rows[i].sql, rows[i].statement, err);
    return r;
}

static void finalize(struct fsck *fsck)
{
    store_sql_finalizep(&fsck->jobs);
    store_sql_finalizep(&fsck->events);
    store_sql_finalizep(&fsck->spec);
    store_sql_finalizep(&fsck->gpus);
    store_sql_finalizep(&fsck->attempts);
}

static void clear(struct fsck *fsck)
{
    finalize(fsck);
    store_sql_closep(&fsck->db);
}

/* The first finding becomes the reason. */
static void refuse(void *arg, const char *sentence)
{
    struct error *err = arg;
    if (err->code == 0)
        (void)error_set(err, -EUCLEAN, "%s", sentence);
}

int store_fsck_open_jobs(sqlite3 *db, struct error *err)
{
    struct error found = { 0 };
    _cleanup_(finalize) struct fsck fsck = { .db = db, .report = refuse, .arg = &found };
    int64_t strays = 0;
    int r = prepare(&fsck, true, err);
    if (r == 0)
        r = check_jobs(&fsck, err);
    if (r == 0)
        r = store_sql_number(
            db, "SELECT count(*) FROM gpu_alloc WHERE job NOT IN (" OPEN_JOBS ")", &strays, err);
    if (r == 0 && strays > 0)
        find(&fsck, "%" PRId64 " GPUs are allocated to jobs that are not open", strays);
    if (r == 0 && fsck.findings > 0)
        return error_set(err, -EUCLEAN, "%.400s (run mgpud --fsck for a full report)", found.message);
    return r;
}

/* The observer of a check, and its stop flag; both may be NULL. */
struct fsck_watcher {
    const atomic_bool *is_stopping;
    const struct store_progress *progress;
};

static int is_stopped(void *arg)
{
    const struct fsck_watcher *watcher = arg;
    store_progress_report(watcher->progress, "checking the store", 0, 0);
    return watcher->is_stopping != NULL && atomic_load(watcher->is_stopping);
}

/* `watcher` must live as long as the connection. */
static int check_all(struct fsck *fsck, const char *path, struct fsck_watcher *watcher, struct error *err)
{
    int version = 0;
    int r = store_sql_open(path, STORE_READ, &fsck->db, err);
    if (r == 0)
        sqlite3_progress_handler(fsck->db, STEPS_BETWEEN_LOOKS, is_stopped, watcher);
    if (r == 0)
        r = store_schema_check(fsck->db, path, &version, err);
    if (r == 0 && version < store_schema_version())
        return error_set(
            err, -ENOTSUP, "%s has the older schema %d: start mgpud once to upgrade it", path, version);
    if (r == 0)
        r = store_sql_run(fsck->db, "BEGIN", err);
    if (r == 0)
        r = check_integrity(fsck, err);
    fsck->file_findings = fsck->findings;
    if (r == 0)
        r = prepare(fsck, false, err);
    if (r == 0)
        r = check_totals(fsck, err);
    return r == 0 ? check_jobs(fsck, err) : r;
}

/* While a daemon writes it, the log cannot be checked: the daemon has done so at its start. */
static int check_log(int dirfd, const char *dir, struct error *err)
{
    struct store_log log;
    _cleanup_close_ int lockfd = openat(dirfd, STORE_LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return lockfd >= 0 && is_file_locked(lockfd) ? 0 : store_log_check(dirfd, dir, &log, err);
}

int store_fsck(const char *dir, void (*report)(void *arg, const char *sentence), void *arg,
    const struct store_progress *progress, struct error *err)
{
    struct fsck_watcher watcher = { .progress = progress };
    _cleanup_free_ char *real = realpath(dir, NULL);
    if (real == NULL)
        return error_set_errno(err, -errno, "cannot find the state directory %s", dir);
    _cleanup_free_ char *path = xasprintf("%s/%s", real, STORE_DATABASE);
    _cleanup_(clear) struct fsck fsck = { .report = report, .arg = arg };
    _cleanup_close_ int dirfd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = check_log(dirfd, real, err);
    if (r == 0)
        r = check_all(&fsck, path, &watcher, err);
    if (r == -EUCLEAN && err != NULL && err->hint[0] == '\0')
        (void)store_snapshot_hint(dirfd, real, err);
    return r < 0 ? r : fsck.findings;
}

static void note_first(void *arg, const char *sentence)
{
    struct store_verification *result = arg;
    if (result->finding[0] == '\0')
        (void)snprintf(
            result->finding, sizeof(result->finding), "%.*s", (int)sizeof(result->finding) - 1, sentence);
}

int store_fsck_copy(const char *path, const atomic_bool *is_stopping, const struct store_progress *progress,
    struct store_verification *ret, struct error *err)
{
    struct fsck_watcher watcher = { is_stopping, progress };
    struct store_verification result = { 0 };
    struct error here = { 0 };
    _cleanup_(clear) struct fsck fsck = { .report = note_first, .arg = &result };
    int r = check_all(&fsck, path, &watcher, &here);
    if (atomic_load(is_stopping))
        return error_set(err, -ECANCELED, "the check was stopped");
    if (r < 0 && r != -EUCLEAN)
        return error_set(err, r, "the check of a snapshot failed: %.400s", here.message);
    if (r == -EUCLEAN)
        find(&fsck, "%s", here.message);
    result.is_file_damaged = r == -EUCLEAN || fsck.file_findings > 0;
    result.findings = (uint32_t)fsck.findings;
    result.checked_ms = clock_wall_ms();
    *ret = result;
    return 0;
}
