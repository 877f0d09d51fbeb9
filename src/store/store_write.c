/* SPDX-License-Identifier: MIT */
/*
 * A change is the event, the job's row, and further rows that depend on the event's type: the table `plans`
 * below.
 *
 * When the disk is full, SQLite may detect that as late as in COMMIT, where it writes the changed pages to
 * the log. A write that found no space has not written a commit frame, so the transaction did not happen, and
 * can safely be repeated. Any other failure of COMMIT, above all of its sync, leaves frames in the log that
 * the next start may find complete: the outcome is unknown and the store ends.
 *
 * In a cluster a transaction is in the log of all controllers before COMMIT. A later failure, even for lack
 * of space, is neither retried nor reported as a refusal: the store ends, and this controller continues by
 * applying the log.
 */
#include "store/store_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "store/store_batch.h"
#include "store/store_ids.h"
#include "store/store_recording.h"
#include "store/store_row.h"
#include "store/store_sqlite.h"

static int run(struct store *store, enum store_statement statement, const char *what, struct error *err)
{
    return store_sql_finish(store->statements[statement], what, err);
}

static int write_row(
    struct store *store, enum store_statement which, const struct store_change *change, struct error *err)
{
    sqlite3_stmt *statement = store->statements[which];
    int rc = store_row_bind(statement, change->row);
    if (rc != SQLITE_OK)
        return store_sql_fail(err, store->db, rc, "jobs");
    int r = store_sql_finish(statement, "jobs", err);
    (void)sqlite3_clear_bindings(statement);
    if (r == 0 && sqlite3_changes(store->db) != 1)
        return error_set(err, -EPROTO, "database: job %" PRIu64 " does not exist", change->row->id);
    return r;
}

static int insert_job(struct store *store, const struct store_change *change, struct error *err)
{
    return write_row(store, SQL_INSERT_JOB, change, err);
}

static int update_job(struct store *store, const struct store_change *change, struct error *err)
{
    return write_row(store, SQL_UPDATE_JOB, change, err);
}

/* The elements of an array have no specification of their own: theirs is the array's. */
static int insert_spec(struct store *store, const struct store_change *change, struct error *err)
{
    if (change->spec == NULL)
        return 0;
    sqlite3_stmt *statement = store->statements[SQL_INSERT_SPEC];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)change->row->id);
    (void)sqlite3_bind_blob64(statement, 2, change->spec->bytes, change->spec->length, SQLITE_STATIC);
    return run(store, SQL_INSERT_SPEC, "specs", err);
}

static int insert_key(struct store *store, const struct store_change *change, struct error *err)
{
    if (change->spec == NULL || change->spec->submit_key == NULL)
        return 0;
    sqlite3_stmt *statement = store->statements[SQL_INSERT_KEY];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)change->key_hash);
    (void)sqlite3_bind_int64(statement, 2, change->row->uid);
    (void)sqlite3_bind_int64(statement, 3, (int64_t)change->row->id);
    (void)sqlite3_bind_int64(statement, 4, (int64_t)change->spec->hash);
    (void)sqlite3_bind_int64(statement, 5, change->wall_ms);
    return run(store, SQL_INSERT_KEY, "submit_keys", err);
}

static int insert_event(struct store *store, const struct store_change *change, struct error *err)
{
    sqlite3_stmt *statement = store->statements[SQL_INSERT_EVENT];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)change->seq);
    (void)sqlite3_bind_int64(statement, 2, (int64_t)change->job);
    (void)sqlite3_bind_int64(statement, 3, change->attempt);
    (void)sqlite3_bind_int64(statement, 4, (int64_t)change->type);
    (void)sqlite3_bind_int64(statement, 5, change->wall_ms);
    (void)sqlite3_bind_blob64(statement, 6, change->event.bytes, change->event.length, SQLITE_STATIC);
    return run(store, SQL_INSERT_EVENT, "events", err);
}

static int insert_attempt(struct store *store, const struct store_change *change, struct error *err)
{
    sqlite3_stmt *statement = store->statements[SQL_INSERT_ATTEMPT];
    const struct job *job = change->row;
    (void)sqlite3_bind_int64(statement, 1, (int64_t)job->id);
    (void)sqlite3_bind_int64(statement, 2, change->attempt);
    (void)sqlite3_bind_text(statement, 3, job->node, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 4, (int64_t)job->token);
    (void)sqlite3_bind_int64(statement, 5, change->wall_ms);
    (void)sqlite3_bind_int64(statement, 6, (int64_t)change->type);
    return run(store, SQL_INSERT_ATTEMPT, "attempts", err);
}

static int change_attempt(
    struct store *store, enum store_statement which, const struct store_change *change, struct error *err)
{
    sqlite3_stmt *statement = store->statements[which];
    (void)sqlite3_bind_int64(statement, 1, (int64_t)change->row->id);
    (void)sqlite3_bind_int64(statement, 2, change->attempt);
    (void)sqlite3_bind_int64(statement, 3, change->wall_ms);
    (void)sqlite3_bind_int64(statement, 4, (int64_t)change->type);
    return run(store, which, "attempts", err);
}

static int start_attempt(struct store *store, const struct store_change *change, struct error *err)
{
    return change_attempt(store, SQL_START_ATTEMPT, change, err);
}

static int end_attempt(struct store *store, const struct store_change *change, struct error *err)
{
    return change_attempt(store, SQL_END_ATTEMPT, change, err);
}

static int insert_gpus(struct store *store, const struct store_change *change, struct error *err)
{
    sqlite3_stmt *statement = store->statements[SQL_INSERT_GPU];
    const struct job *job = change->row;
    const struct gpu_grant *grants = job->grants.items;
    size_t count = job_holds_gpus(job) ? job->grants.count : 0; // some have none yet: job_holds_gpus()
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        const char *node = grants[i].node != NULL ? grants[i].node : job->node;
        (void)sqlite3_bind_text(statement, 1, node, -1, SQLITE_STATIC);
        (void)sqlite3_bind_text(statement, 2, grants[i].uuid, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 3, grants[i].slot);
        (void)sqlite3_bind_int64(statement, 4, (int64_t)job->id);
        (void)sqlite3_bind_int64(statement, 5, change->attempt);
        (void)sqlite3_bind_int64(statement, 6, grants[i].index);
        (void)sqlite3_bind_int64(statement, 7, (int64_t)grants[i].memory);
        (void)sqlite3_bind_int64(statement, 8, grants[i].share);
        r = store_sql_finish(statement, "gpu_alloc", err);
        if (r < 0)
            return error_wrap(
                err, "job %" PRIu64 " cannot be allocated GPU %u of %s", job->id, grants[i].index, node);
    }
    return r;
}

static int delete_gpus(struct store *store, const struct store_change *change, struct error *err)
{
    (void)sqlite3_bind_int64(store->statements[SQL_DELETE_GPUS], 1, (int64_t)change->row->id);
    return run(store, SQL_DELETE_GPUS, "gpu_alloc", err);
}

#define PLAN_STEPS 4

/* A stop and a preemption do not change the booking, which ends with `returned`, `requeued` or `ended`, and
 * is suspended while the job is parked. */
static int (*const plans[EVENT_TYPES][PLAN_STEPS])(
    struct store *, const struct store_change *, struct error *) = {
    [EVENT_SUBMITTED] = { insert_job, insert_spec, insert_key, insert_event },
    [EVENT_ALLOCATED] = { update_job, insert_attempt, insert_gpus, insert_event },
    [EVENT_STARTED] = { update_job, start_attempt, insert_event },
    [EVENT_STOP] = { update_job, insert_event },
    [EVENT_RETURNED] = { update_job, end_attempt, delete_gpus, insert_event },
    [EVENT_ENDED] = { update_job, end_attempt, delete_gpus, insert_event },
    [EVENT_EDITED] = { update_job, insert_event },
    [EVENT_HELD] = { update_job, insert_event },
    [EVENT_RELEASED] = { update_job, insert_event },
    [EVENT_PREEMPTED] = { update_job, insert_event },
    [EVENT_REQUEUED] = { update_job, end_attempt, delete_gpus, insert_event },
    [EVENT_SPLIT] = { update_job, insert_event },
    [EVENT_MEMBER] = { update_job, insert_event },
    [EVENT_CLUSTER] = { insert_event },
    [EVENT_IDLE] = { update_job, insert_event },
    [EVENT_SUSPENDED] = { update_job, insert_event },
    [EVENT_CONTINUED] = { update_job, insert_event },
    [EVENT_SIGNALLED] = { update_job, insert_event },
    [EVENT_STEP_STARTED] = { insert_event },
    [EVENT_STEP_ENDED] = { insert_event },
    [EVENT_PARK] = { update_job, insert_event },
    [EVENT_PARKED] = { update_job, delete_gpus, insert_event },
    [EVENT_UNPARK] = { update_job, insert_event },
    [EVENT_RESTORING] = { update_job, insert_gpus, insert_event },
    [EVENT_UNPARKED] = { update_job, insert_event },
    [EVENT_RECONCILED] = { update_job, insert_event },
    [EVENT_INHERITS] = { update_job, insert_gpus, insert_event },
};

static int write_state(struct store *store, const struct store_change *change, struct error *err)
{
    enum store_statement which = change->is_removal ? SQL_DELETE_STATE : SQL_PUT_STATE;
    sqlite3_stmt *statement = store->statements[which];
    (void)sqlite3_bind_text(statement, 1, change->kind, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 2, change->key, -1, SQLITE_STATIC);
    if (!change->is_removal) {
        const void *value = change->event.length > 0 ? (const void *)change->event.bytes : ""; // not NULL
        (void)sqlite3_bind_blob64(statement, 3, value, change->event.length, SQLITE_STATIC);
    }
    return run(store, which, "cluster_state", err);
}

static int insert_ended(struct store *store, const struct store_change *change, struct error *err)
{
    (void)sqlite3_bind_int64(store->statements[SQL_INSERT_ENDED], 1, (int64_t)change->row->id);
    return run(store, SQL_INSERT_ENDED, "ended", err);
}

static int write_change(struct store *store, const struct store_change *change, struct error *err)
{
    if (change->kind != NULL)
        return write_state(store, change, err);
    if (change->type >= EVENT_TYPES || plans[change->type][0] == NULL)
        return error_set(err, -EPROTO, "event %" PRIu64 " has an unknown type", change->seq);
    if ((change->row == NULL) != (change->type == EVENT_CLUSTER))
        return error_set(err, -EPROTO, "event %" PRIu64 " does not belong to its job", change->seq);
    int r = 0;
    for (size_t i = 0; r == 0 && i < PLAN_STEPS && plans[change->type][i] != NULL; i++)
        r = plans[change->type][i](store, change, err);
    if (r == 0 && change->row != NULL && change->row->state == JOB_DONE)
        r = insert_ended(store, change, err);
    return r < 0 ? error_wrap(err, "event %" PRIu64, change->seq) : 0;
}

static int write_batches(struct store *store, void *arg, struct error *err)
{
    int r = 0;
    for (const struct store_request *request = arg; r == 0 && request != NULL; request = request->next) {
        const struct store_batch *batch = (const struct store_batch *)request;
        if (batch->gap > 0)
            r = store_ids_skip(store->db, batch->gap, err);
        for (size_t i = 0; r == 0 && i < batch->count; i++)
            r = write_change(store, &batch->changes[i], err);
    }
    return r;
}

/* The log may contain the transaction: it must not be reported as one that did not happen. */
static int outcome_unknown(struct error *err)
{
    if (err != NULL)
        err->code = -EIO;
    return -EIO;
}

/* Commits succeed while the removed files are still open, but the next start would not find their
 * data. */
static int check_files(const struct store *store, struct error *err)
{
    int has_moved = 0;
    (void)sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
    bool has_log = faccessat(store->dirfd, STORE_DATABASE "-wal", F_OK, 0) == 0 || errno != ENOENT;
    if (!has_moved && has_log)
        return 0;
    return error_set(err, -EIO, "%s/%s%s was removed or replaced while mgpud runs: the change is not stored",
        store->dir, STORE_DATABASE, has_moved ? "" : "-wal");
}

static int try_transaction(struct store *store,
    int (*write)(struct store *store, void *arg, struct error *err), void *arg, struct error *err)
{
    int r = run(store, SQL_BEGIN, "database", err);
    if (r == 0)
        r = store_recording_begin(store, err);
    if (r == 0)
        r = write(store, arg, err);
    if (r == 0)
        r = store_recording_append(store, err);
    store_recording_end(store);
    if (r == 0)
        r = run(store, SQL_COMMIT, "the change may or may not have been stored", err);
    if (r == 0)
        r = check_files(store, err);
    if (r < 0 && store->is_appended)
        r = outcome_unknown(err);
    /* After a failed COMMIT this only releases what the connection holds; it writes nothing. */
    if (r < 0 && !sqlite3_get_autocommit(store->db))
        (void)run(store, SQL_ROLLBACK, "database", NULL);
    return r;
}

int store_write_transaction(struct store *store,
    int (*write)(struct store *store, void *arg, struct error *err), void *arg, struct error *err)
{
    store->is_appended = false;
    int r = try_transaction(store, write, arg, err);
    if (r == -ENOSPC && store_space_give_up(store))
        r = try_transaction(store, write, arg, err);
    return r;
}

int store_write_batches(struct store *store, struct store_request *first, struct error *err)
{
    return store_write_transaction(store, write_batches, first, err);
}
