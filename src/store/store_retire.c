/* SPDX-License-Identifier: MIT */
/*
 * Jobs are removed in batches of RETIRE_JOBS, each in its own transaction: a kill in between leaves only
 * complete jobs. The next batch is requested after the caller's thread has received the result of the last
 * one, so commits made meanwhile come first. The file does not shrink; its free pages are reused.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "store/store_ended.h"
#include "store/store_sqlite.h"
#include "store/store_write.h"

#define RETIRE_JOBS 32

struct retire {
    struct store_request request;
    bool has_cut;
    struct ended_place cut; // this one and all before it are removed
    uint64_t keep_max;
    char *kept; // ids that stay, as JSON
    uint64_t total;
    size_t count; // of this batch
    void (*on_retired)(void *arg, uint64_t jobs);
    void *arg;
};

static const struct store_request_kind retire_kind;

/* The newest surplus job may be newer than the age limit. */
static int find_cut(struct store *store, struct retire *retire, struct error *err)
{
    sqlite3_stmt *find = store->statements[SQL_FIND_SURPLUS];
    retire->has_cut = true;
    if (retire->keep_max > INT64_MAX)
        return 0;
    (void)sqlite3_bind_int64(find, 1, (int64_t)retire->keep_max);
    int rc = sqlite3_step(find);
    if (rc == SQLITE_ROW && sqlite3_column_int64(find, 0) >= retire->cut.ended_ms)
        retire->cut =
            (struct ended_place){ sqlite3_column_int64(find, 0), (uint64_t)sqlite3_column_int64(find, 1) };
    int r = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : store_sql_fail(err, store->db, rc, "ended");
    (void)sqlite3_reset(find);
    return r;
}

static int find_jobs(struct store *store, const struct retire *retire, struct ended_place jobs[RETIRE_JOBS],
    size_t *ret, struct error *err)
{
    sqlite3_stmt *find = store->statements[SQL_FIND_OLD];
    size_t count = 0;
    int rc;
    (void)sqlite3_bind_int64(find, 1, retire->cut.ended_ms);
    (void)sqlite3_bind_int64(find, 2, (int64_t)retire->cut.job);
    (void)sqlite3_bind_int64(find, 3, RETIRE_JOBS);
    (void)sqlite3_bind_text(find, 4, retire->kept, -1, SQLITE_STATIC);
    while ((rc = sqlite3_step(find)) == SQLITE_ROW)
        jobs[count++] = (struct ended_place){ .job = (uint64_t)sqlite3_column_int64(find, 0),
            .ended_ms = sqlite3_column_int64(find, 1) };
    int r = rc == SQLITE_DONE ? 0 : store_sql_fail(err, store->db, rc, "ended");
    (void)sqlite3_reset(find);
    *ret = count;
    return r;
}

/* The order matters: events may be removed only after their job, whose removal includes its other rows. */
static int remove_job(struct store *store, const struct ended_place *job, struct error *err)
{
    static const struct {
        enum store_statement statement;
        bool has_time;
        const char *what;
    } steps[] = {
        { SQL_KEEP_DAY, true, "kept_days" },
        { SQL_DELETE_ENDED, true, "ended" },
        { SQL_DELETE_KEYS, false, "submit_keys" },
        { SQL_DELETE_JOB, false, "jobs" },
        { SQL_DELETE_EVENTS, false, "events" },
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof(steps) / sizeof(steps[0]); i++) {
        sqlite3_stmt *statement = store->statements[steps[i].statement];
        (void)sqlite3_bind_int64(statement, 1, (int64_t)job->job);
        if (steps[i].has_time)
            (void)sqlite3_bind_int64(statement, 2, job->ended_ms);
        r = store_sql_finish(statement, steps[i].what, err);
    }
    return r;
}

static int remove_batch(struct store *store, void *arg, struct error *err)
{
    struct retire *retire = arg;
    struct ended_place jobs[RETIRE_JOBS];
    int r = find_jobs(store, retire, jobs, &retire->count, err);
    if (r == 0 && retire->count > 0)
        r = store_sql_finish(store->statements[SQL_RAISE_EVENT_FLOOR], "meta", err);
    for (size_t i = 0; r == 0 && i < retire->count; i++)
        r = remove_job(store, &jobs[i], err);
    return r < 0 ? error_wrap(err, "removal of old jobs") : 0;
}

static int run_retire(struct store *store, struct store_request *request, struct error *err)
{
    struct retire *retire = (struct retire *)request;
    int r = retire->has_cut ? 0 : find_cut(store, retire, err);
    return r < 0 ? r : store_write_transaction(store, remove_batch, retire, err);
}

static void answer_retire(struct store *store, struct store_request *request)
{
    struct retire *retire = (struct retire *)request;
    uint64_t total = retire->total + retire->count;
    if (retire->count == 0) {
        retire->on_retired(retire->arg, total);
        return;
    }
    struct retire *next = xcalloc(1, sizeof(*next));
    *next = *retire;
    retire->kept = NULL; // owned by the next one
    next->request = (struct store_request){ .kind = &retire_kind };
    next->total = total;
    store_thread_push(store, &next->request);
}

static void free_retire(struct store_request *request)
{
    free(((struct retire *)request)->kept);
    free(request);
}

static const struct store_request_kind retire_kind = {
    .run = run_retire, .answer = answer_retire, .free = free_retire
};

void store_retire(struct store *store, int64_t before_ms, uint64_t keep_max, const char *kept,
    void (*on_retired)(void *arg, uint64_t jobs), void *arg)
{
    struct retire *retire = xcalloc(1, sizeof(*retire));
    *retire = (struct retire){
        .request.kind = &retire_kind,
        .cut = { .ended_ms = before_ms },
        .keep_max = keep_max,
        .kept = xasprintf("[%s]", kept != NULL ? kept : ""),
        .on_retired = on_retired,
        .arg = arg,
    };
    store_thread_push(store, &retire->request);
}
