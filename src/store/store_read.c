/* SPDX-License-Identifier: MIT */
/*
 * Reads. At a start jobs are loaded over a separate connection, on the caller's thread; afterwards everything
 * is read on the store's thread, after the commits requested before.
 *
 * A failed read is not "no such row": it ends the store, like a failed commit.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/store_row.h"
#include "store/store_sqlite.h"

/* --- at a start --- */

#define WHERE_OPEN_OR_RECENT                                                                                 \
    "WHERE id IN (SELECT id FROM jobs WHERE state <> 5 UNION ALL SELECT id FROM"                             \
    " (SELECT job AS id FROM ended ORDER BY ended_ms DESC, job DESC LIMIT ?1)) ORDER BY id"

int store_load_jobs(struct store *store, size_t recent_done, void (*visit)(void *arg, struct job *job),
    void *arg, struct error *err)
{
    _cleanup_database_ sqlite3 *db = NULL;
    _cleanup_statement_ sqlite3_stmt *select = NULL;
    _cleanup_free_ char *path = store_path(store);
    _cleanup_free_ char *sql = store_row_select_sql(WHERE_OPEN_OR_RECENT);
    int r = store_sql_open(path, STORE_READ, &db, err);
    if (r == 0)
        r = store_sql_prepare(db, sql, &select, err);
    if (r < 0)
        return r;
    (void)sqlite3_bind_int64(select, 1, recent_done > INT64_MAX ? INT64_MAX : (int64_t)recent_done);
    int rc;
    while ((rc = sqlite3_step(select)) == SQLITE_ROW) {
        struct job *job = NULL;
        r = store_row_read(select, &job, err);
        if (r < 0)
            return r;
        visit(arg, job);
    }
    return rc == SQLITE_DONE ? 0 : store_sql_fail(err, db, rc, "jobs");
}

int store_load_state(struct store *store,
    void (*visit)(void *arg, const char *kind, const char *key, const uint8_t *bytes, size_t length),
    void *arg, struct error *err)
{
    _cleanup_database_ sqlite3 *db = NULL;
    _cleanup_statement_ sqlite3_stmt *select = NULL;
    _cleanup_free_ char *path = store_path(store);
    int r = store_sql_open(path, STORE_READ, &db, err);
    if (r == 0)
        r = store_sql_prepare(
            db, "SELECT kind, key, value FROM cluster_state ORDER BY kind, key", &select, err);
    if (r < 0)
        return r;
    int rc;
    while ((rc = sqlite3_step(select)) == SQLITE_ROW)
        visit(arg, (const char *)sqlite3_column_text(select, 0), (const char *)sqlite3_column_text(select, 1),
            sqlite3_column_blob(select, 2), (size_t)sqlite3_column_bytes(select, 2));
    return rc == SQLITE_DONE ? 0 : store_sql_fail(err, db, rc, "cluster_state");
}

/* --- one job's specification --- */

struct fetch_spec {
    struct store_request request;
    uint64_t job;
    struct spec_bytes *spec;
    void (*on_spec)(void *arg, uint64_t job, struct spec_bytes *spec);
    void *arg;
};

/* Steps to the first row; 0: no row, 1: a row, or an errno. The caller resets. */
static int step(sqlite3_stmt *statement, const char *what, struct error *err)
{
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return rc == SQLITE_ROW;
    return store_sql_fail(err, sqlite3_db_handle(statement), rc, what);
}

static int run_fetch_spec(struct store *store, struct store_request *request, struct error *err)
{
    struct fetch_spec *fetch = (struct fetch_spec *)request;
    sqlite3_stmt *statement = store->statements[SQL_SELECT_SPEC];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)fetch->job);
    int r = step(statement, "specs", err);
    if (r == 1)
        r = spec_bytes_read(
            sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0), &fetch->spec, err);
    (void)sqlite3_reset(statement);
    return r < 0 ? error_wrap(err, "specification of job %" PRIu64, fetch->job) : 0;
}

static void answer_fetch_spec(struct store *store, struct store_request *request)
{
    struct fetch_spec *fetch = (struct fetch_spec *)request;
    fetch->on_spec(fetch->arg, fetch->job, take_ptr(fetch->spec));
}

static void drop_fetch_spec(struct store_request *request)
{
    const struct fetch_spec *fetch = (const struct fetch_spec *)request;
    fetch->on_spec(fetch->arg, fetch->job, NULL);
}

static void free_fetch_spec(struct store_request *request)
{
    spec_bytes_drop(((struct fetch_spec *)request)->spec);
    free(request);
}

static const struct store_request_kind fetch_spec_kind = {
    .run = run_fetch_spec, .answer = answer_fetch_spec, .drop = drop_fetch_spec, .free = free_fetch_spec
};

void store_fetch_spec(struct store *store, uint64_t job,
    void (*on_spec)(void *arg, uint64_t job, struct spec_bytes *spec), void *arg)
{
    struct fetch_spec *fetch = xcalloc(1, sizeof(*fetch));
    *fetch =
        (struct fetch_spec){ .request.kind = &fetch_spec_kind, .job = job, .on_spec = on_spec, .arg = arg };
    store_thread_push(store, &fetch->request);
}

/* --- one job --- */

struct fetch_job {
    struct store_request request;
    uint64_t job;
    struct job *row;
    void (*on_job)(void *arg, uint64_t job, struct job *row);
    void *arg;
};

static int run_fetch_job(struct store *store, struct store_request *request, struct error *err)
{
    struct fetch_job *fetch = (struct fetch_job *)request;
    sqlite3_stmt *statement = store->statements[SQL_SELECT_JOB];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)fetch->job);
    int r = step(statement, "jobs", err);
    if (r == 1)
        r = store_row_read(statement, &fetch->row, err);
    (void)sqlite3_reset(statement);
    return r < 0 ? r : 0;
}

static void answer_fetch_job(struct store *store, struct store_request *request)
{
    struct fetch_job *fetch = (struct fetch_job *)request;
    fetch->on_job(fetch->arg, fetch->job, take_ptr(fetch->row));
}

static void drop_fetch_job(struct store_request *request)
{
    const struct fetch_job *fetch = (const struct fetch_job *)request;
    fetch->on_job(fetch->arg, fetch->job, NULL);
}

static void free_fetch_job(struct store_request *request)
{
    job_free(((struct fetch_job *)request)->row);
    free(request);
}

static const struct store_request_kind fetch_job_kind = {
    .run = run_fetch_job, .answer = answer_fetch_job, .drop = drop_fetch_job, .free = free_fetch_job
};

void store_fetch_job(
    struct store *store, uint64_t job, void (*on_job)(void *arg, uint64_t job, struct job *row), void *arg)
{
    struct fetch_job *fetch = xcalloc(1, sizeof(*fetch));
    *fetch = (struct fetch_job){ .request.kind = &fetch_job_kind, .job = job, .on_job = on_job, .arg = arg };
    store_thread_push(store, &fetch->request);
}

/* --- events --- */

#define STEP_EVENTS_MAX 50000U // of one job

struct fetch_events {
    struct store_request request;
    uint64_t after, job;
    size_t limit;
    bool has_steps_alone; // those from which the steps of the job fold
    struct job_event *events;
    size_t count, capacity;
    size_t bytes; // of the records
    void (*on_events)(void *arg, const struct job_event *events, size_t count);
    void *arg;
};

static int read_event(struct fetch_events *fetch, sqlite3_stmt *statement, struct error *err)
{
    if (fetch->count == fetch->capacity) {
        fetch->capacity = fetch->capacity > 0 ? fetch->capacity * 2 : 16;
        fetch->events = xreallocarray(fetch->events, fetch->capacity, sizeof(*fetch->events));
    }
    const void *bytes = sqlite3_column_blob(statement, 1);
    int r = record_decode(&job_event_record, bytes, (size_t)sqlite3_column_bytes(statement, 1),
        &fetch->events[fetch->count], err);
    if (r < 0)
        return error_wrap(err, "event %" PRIi64, (int64_t)sqlite3_column_int64(statement, 0));
    fetch->count++;
    fetch->bytes += (size_t)sqlite3_column_bytes(statement, 1);
    return 0;
}

/* The displayed events of one job; the steps of a job fold from all their events. */
static bool is_enough(const struct fetch_events *fetch)
{
    return fetch->job != 0 && !fetch->has_steps_alone && fetch->bytes >= STORE_JOB_EVENTS_BYTES;
}

static int run_fetch_events(struct store *store, struct store_request *request, struct error *err)
{
    struct fetch_events *fetch = (struct fetch_events *)request;
    sqlite3_stmt *statement = store->statements[fetch->has_steps_alone ? SQL_SELECT_STEP_EVENTS
                                                : fetch->job != 0      ? SQL_SELECT_JOB_EVENTS
                                                                       : SQL_SELECT_EVENTS];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)fetch->after);
    (void)sqlite3_bind_int64(statement, 2, fetch->limit > INT64_MAX ? INT64_MAX : (int64_t)fetch->limit);
    if (fetch->job != 0)
        (void)sqlite3_bind_int64(statement, 3, (int64_t)fetch->job);
    int r = 0;
    while (!is_enough(fetch) && (r = step(statement, "events", err)) == 1) {
        r = read_event(fetch, statement, err);
        if (r < 0)
            break;
    }
    (void)sqlite3_reset(statement);
    return r;
}

static void answer_fetch_events(struct store *store, struct store_request *request)
{
    struct fetch_events *fetch = (struct fetch_events *)request;
    fetch->on_events(fetch->arg, fetch->events, fetch->count);
}

static void drop_fetch_events(struct store_request *request)
{
    const struct fetch_events *fetch = (const struct fetch_events *)request;
    fetch->on_events(fetch->arg, NULL, 0);
}

static void free_fetch_events(struct store_request *request)
{
    struct fetch_events *fetch = (struct fetch_events *)request;
    for (size_t i = 0; i < fetch->count; i++)
        job_event_clear(&fetch->events[i]);
    free(fetch->events);
    free(fetch);
}

static const struct store_request_kind fetch_events_kind = { .run = run_fetch_events,
    .answer = answer_fetch_events,
    .drop = drop_fetch_events,
    .free = free_fetch_events,
    .is_page = true };

/* The answer must precede events published later. */
static const struct store_request_kind fetch_steps_kind = { .run = run_fetch_events,
    .answer = answer_fetch_events,
    .drop = drop_fetch_events,
    .free = free_fetch_events };

void store_fetch_events(struct store *store, uint64_t after, uint64_t job, size_t limit,
    void (*on_events)(void *arg, const struct job_event *events, size_t count), void *arg)
{
    struct fetch_events *fetch = xcalloc(1, sizeof(*fetch));
    *fetch = (struct fetch_events){ .request.kind = &fetch_events_kind,
        .after = after,
        .job = job,
        .limit = limit,
        .on_events = on_events,
        .arg = arg };
    store_thread_push(store, &fetch->request);
}

void store_fetch_steps(struct store *store, uint64_t job,
    void (*on_events)(void *arg, const struct job_event *events, size_t count), void *arg)
{
    struct fetch_events *fetch = xcalloc(1, sizeof(*fetch));
    *fetch = (struct fetch_events){ .request.kind = &fetch_steps_kind,
        .job = job,
        .limit = STEP_EVENTS_MAX,
        .has_steps_alone = true,
        .on_events = on_events,
        .arg = arg };
    store_thread_push(store, &fetch->request);
}
