/* SPDX-License-Identifier: MIT */
/*
 * The table below is the jobs table, column by column. A field added to struct job or struct job_run is a row
 * here and a column in the schema. 64-bit numbers are stored as SQLite's signed integers with the same bit
 * pattern.
 */
#include "store/store_row.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/record.h"
#include "base/record_dense.h"
#include "base/record_equal.h"
#include "base/strings.h"
#include "job/idle.h"
#include "store/store_sql.h"

enum column_kind {
    COLUMN_U32,
    COLUMN_I32,
    COLUMN_64,
    COLUMN_BOOL,
    COLUMN_TEXT,
    COLUMN_ASK,
    COLUMN_GRANTS,
    COLUMN_RECORD, // a pointer to a record, or NULL
    COLUMN_NODES
};

struct column {
    const char *name;
    size_t offset;
    enum column_kind kind;
    bool is_fixed;                    // as submitted: left out of updates
    bool is_run;                      // a member of struct job_run
    const struct record_type *record; // of COLUMN_RECORD
};

#define COLUMN(kind_, member_)                                                                               \
    {                                                                                                        \
        .name = #member_, .kind = (kind_), .offset = offsetof(struct job, member_)                           \
    }
#define FIXED(kind_, member_)                                                                                \
    {                                                                                                        \
        .name = #member_, .kind = (kind_), .offset = offsetof(struct job, member_), .is_fixed = true         \
    }

#define RUN(kind_, member_)                                                                                  \
    {                                                                                                        \
        .name = #member_, .kind = (kind_), .offset = offsetof(struct job_run, member_), .is_run = true       \
    }

/* A member that had another name in earlier versions: renaming the column would make stores that no earlier
 * version opens. */
#define RUN_AS(kind_, member_, name_)                                                                        \
    {                                                                                                        \
        .name = (name_), .kind = (kind_), .offset = offsetof(struct job_run, member_), .is_run = true        \
    }

#define RUN_RECORD(record_, member_)                                                                         \
    {                                                                                                        \
        .name = #member_, .kind = COLUMN_RECORD, .offset = offsetof(struct job_run, member_),                \
        .is_run = true, .record = &(record_)                                                                 \
    }

static const struct column columns[] = {
    FIXED(COLUMN_64, id),
    FIXED(COLUMN_U32, uid),
    FIXED(COLUMN_U32, gid),
    FIXED(COLUMN_U32, account),
    FIXED(COLUMN_64, array_job),
    FIXED(COLUMN_U32, array_index),
    FIXED(COLUMN_TEXT, summary),
    FIXED(COLUMN_64, submitted_ms),
    FIXED(COLUMN_64, api_token),
    COLUMN(COLUMN_ASK, ask),
    COLUMN(COLUMN_TEXT, name),
    COLUMN(COLUMN_U32, hold),
    COLUMN(COLUMN_TEXT, array_left),
    COLUMN(COLUMN_U32, array_open),
    COLUMN(COLUMN_U32, array_failed),
    COLUMN(COLUMN_U32, array_cancelled),
    COLUMN(COLUMN_U32, array_done),
    COLUMN(COLUMN_I32, array_exit_max),
    COLUMN(COLUMN_U32, preemptions),
    COLUMN(COLUMN_BOOL, is_requeued),
    COLUMN(COLUMN_U32, stop_reason),
    COLUMN(COLUMN_U32, state),
    COLUMN(COLUMN_U32, attempt),
    COLUMN(COLUMN_64, started_ms),
    COLUMN(COLUMN_64, ended_ms),
    COLUMN(COLUMN_64, token),
    COLUMN(COLUMN_TEXT, node),
    RUN(COLUMN_TEXT, boot_id),
    COLUMN(COLUMN_GRANTS, grants),
    RUN(COLUMN_U32, cpu_milli),
    RUN(COLUMN_64, memory),
    RUN(COLUMN_TEXT, log_path),
    COLUMN(COLUMN_U32, end),
    COLUMN(COLUMN_I32, exit_code),
    RUN(COLUMN_U32, signal),
    COLUMN(COLUMN_U32, stopped_by),
    RUN(COLUMN_64, run_ms),
    RUN(COLUMN_64, cpu_ms),
    RUN(COLUMN_64, max_rss),
    RUN(COLUMN_64, log_bytes),
    COLUMN(COLUMN_TEXT, text),
    RUN_RECORD(job_usage_record, usage),
    COLUMN(COLUMN_U32, idle_level),
    RUN_AS(COLUMN_64, idle_warned_ms, "idle_told_ms"),
    COLUMN(COLUMN_U32, restarts),
    COLUMN(COLUMN_U32, retries),
    COLUMN(COLUMN_64, queued_ms),
    COLUMN(COLUMN_64, retry_ms),
    RUN(COLUMN_U32, requeue_cause),
    RUN(COLUMN_64, suspended_ms),
    RUN(COLUMN_U32, terms),
    RUN(COLUMN_NODES, nodes),
    RUN(COLUMN_64, node_lease_ms),
    RUN(COLUMN_U32, stop_terms),
    RUN(COLUMN_64, stop_grace_ms),
    RUN(COLUMN_U32, limit_requeues),
    RUN(COLUMN_U32, loss_requeues),
    RUN_RECORD(job_park_record, park),
    RUN_RECORD(job_earlier_record, earlier),
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static_assert(sizeof(enum job_state) == sizeof(uint32_t) && sizeof(enum job_end) == sizeof(uint32_t),
    "enums are stored as 32 bits");

struct grant_list {
    struct record_list grants;
};

static const struct record_field grant_list_fields[] = {
    RECORD_SUBLIST(1, struct grant_list, grants, EVENT_GPUS_MAX, &gpu_grant_record),
};

const struct record_type store_row_grants_record =
    RECORD_TYPE(60, "grants", struct grant_list, grant_list_fields);

char *store_row_insert_sql(void)
{
    struct buffer sql = { 0 };
    buffer_append_text(&sql, "INSERT INTO jobs (");
    for (size_t i = 0; i < N_COLUMNS; i++)
        buffer_printf(&sql, "%s\"%s\"", i > 0 ? ", " : "", columns[i].name);
    buffer_append_text(&sql, ") VALUES (");
    for (size_t i = 0; i < N_COLUMNS; i++)
        buffer_printf(&sql, "%s?%zu", i > 0 ? ", " : "", i + 1);
    buffer_append_text(&sql, ")");
    return buffer_take(&sql);
}

char *store_row_update_sql(void)
{
    struct buffer sql = { 0 };
    buffer_append_text(&sql, "UPDATE jobs SET ");
    const char *separator = "";
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (columns[i].is_fixed)
            continue;
        buffer_printf(&sql, "%s\"%s\" = ?%zu", separator, columns[i].name, i + 1);
        separator = ", ";
    }
    buffer_append_text(&sql, " WHERE id = ?1");
    return buffer_take(&sql);
}

char *store_row_select_sql(const char *where)
{
    struct buffer sql = { 0 };
    buffer_append_text(&sql, "SELECT ");
    for (size_t i = 0; i < N_COLUMNS; i++)
        buffer_printf(&sql, "%s\"%s\"", i > 0 ? ", " : "", columns[i].name);
    buffer_printf(&sql, " FROM jobs %s", where);
    return buffer_take(&sql);
}

/* SQLite copies the bytes, which are valid only during this call. */
static int bind_record(sqlite3_stmt *statement, int index, const struct record_type *type, const void *object)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode_dense(type, object, &bytes);
    return sqlite3_bind_blob64(statement, index, bytes.bytes, bytes.length, SQLITE_TRANSIENT);
}

static int bind_grants(sqlite3_stmt *statement, int index, const struct record_list *grants)
{
    if (grants->count == 0)
        return sqlite3_bind_null(statement, index);
    const struct grant_list list = { .grants = *grants };
    return bind_record(statement, index, &store_row_grants_record, &list);
}

static int bind_pointer(
    sqlite3_stmt *statement, int index, const struct record_type *type, const void *record)
{
    return record == NULL ? sqlite3_bind_null(statement, index) : bind_record(statement, index, type, record);
}

static int bind_nodes(sqlite3_stmt *statement, int index, const struct job_nodes *nodes)
{
    return nodes == NULL ? sqlite3_bind_null(statement, index)
                         : bind_record(statement, index, &job_nodes_record, nodes);
}

static int bind_column(sqlite3_stmt *statement, int index, const struct column *column, const void *member)
{
    switch (column->kind) {
    case COLUMN_U32: return sqlite3_bind_int64(statement, index, *(const uint32_t *)member);
    case COLUMN_I32: return sqlite3_bind_int64(statement, index, *(const int32_t *)member);
    case COLUMN_64: return sqlite3_bind_int64(statement, index, *(const int64_t *)member);
    case COLUMN_BOOL: return sqlite3_bind_int64(statement, index, *(const bool *)member);
    case COLUMN_ASK:
        return bind_record(statement, index, &job_ask_record, *(const struct job_ask *const *)member);
    case COLUMN_RECORD: return bind_pointer(statement, index, column->record, *(const void *const *)member);
    case COLUMN_NODES: return bind_nodes(statement, index, *(const struct job_nodes *const *)member);
    case COLUMN_TEXT:
        return sqlite3_bind_text(statement, index, *(const char *const *)member, -1, SQLITE_STATIC);
    default: return bind_grants(statement, index, member);
    }
}

/* The two structs that have the columns; zeros in place of a run before the first allocation. */
struct row {
    const struct job *job;
    const struct job_run *run;
};

static struct row row_of(const struct job *job)
{
    return (struct row){ job, job_run(job) };
}

static const void *member_of(const struct row *row, const struct column *column)
{
    return (column->is_run ? (const char *)row->run : (const char *)row->job) + column->offset;
}

int store_row_bind(sqlite3_stmt *statement, const struct job *job)
{
    const struct row row = row_of(job);
    for (size_t i = 0; i < N_COLUMNS; i++) {
        int rc = bind_column(statement, (int)i + 1, &columns[i], member_of(&row, &columns[i]));
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

static int read_number(sqlite3_stmt *statement, int index, int64_t min, int64_t max, int64_t *ret)
{
    *ret = sqlite3_column_int64(statement, index);
    return *ret >= min && *ret <= max ? 0 : -EUCLEAN;
}

static int read_grants(sqlite3_stmt *statement, int index, struct record_list *ret, struct error *err)
{
    const void *bytes = sqlite3_column_blob(statement, index);
    struct grant_list list = { 0 };
    if (bytes == NULL)
        return 0;
    if (record_decode(
            &store_row_grants_record, bytes, (size_t)sqlite3_column_bytes(statement, index), &list, err) < 0)
        return -EUCLEAN;
    *ret = list.grants;
    return 0;
}

static int read_ask(sqlite3_stmt *statement, int index, const struct job_ask **ret, struct error *err)
{
    const void *bytes = sqlite3_column_blob(statement, index);
    size_t length = (size_t)sqlite3_column_bytes(statement, index);
    struct job_ask ask;
    if (bytes == NULL || record_decode(&job_ask_record, bytes, length, &ask, err) < 0)
        return -EUCLEAN;
    *ret = ask_shared_new(&ask);
    job_ask_clear(&ask);
    return 0;
}

static int read_record(
    sqlite3_stmt *statement, int index, const struct record_type *type, void **ret, struct error *err)
{
    const void *bytes = sqlite3_column_blob(statement, index);
    if (bytes == NULL)
        return 0;
    _cleanup_free_ void *record = xcalloc(1, type->size);
    if (record_decode(type, bytes, (size_t)sqlite3_column_bytes(statement, index), record, err) < 0)
        return -EUCLEAN;
    *ret = take_ptr(record);
    return 0;
}

static int read_nodes(sqlite3_stmt *statement, int index, struct job_nodes **ret, struct error *err)
{
    const void *bytes = sqlite3_column_blob(statement, index);
    struct job_nodes nodes;
    if (bytes == NULL)
        return 0;
    if (record_decode(&job_nodes_record, bytes, (size_t)sqlite3_column_bytes(statement, index), &nodes, err) <
        0)
        return -EUCLEAN;
    *ret = xcalloc(1, sizeof(nodes));
    **ret = nodes;
    return 0;
}

static int read_column(
    sqlite3_stmt *statement, int index, const struct column *column, void *member, struct error *err)
{
    int64_t number = 0;
    int r = 0;
    switch (column->kind) {
    case COLUMN_U32:
        r = read_number(statement, index, 0, UINT32_MAX, &number);
        *(uint32_t *)member = (uint32_t)number;
        return r;
    case COLUMN_I32:
        r = read_number(statement, index, INT32_MIN, INT32_MAX, &number);
        *(int32_t *)member = (int32_t)number;
        return r;
    case COLUMN_64: *(int64_t *)member = sqlite3_column_int64(statement, index); return 0;
    case COLUMN_BOOL:
        r = read_number(statement, index, 0, 1, &number);
        *(bool *)member = number != 0;
        return r;
    case COLUMN_ASK: return read_ask(statement, index, member, err);
    case COLUMN_RECORD: return read_record(statement, index, column->record, member, err);
    case COLUMN_NODES: return read_nodes(statement, index, member, err);
    case COLUMN_TEXT: *(char **)member = store_sql_text(statement, index); return 0;
    default: return read_grants(statement, index, member, err);
    }
}

int store_row_read(sqlite3_stmt *statement, struct job **ret, struct error *err)
{
    static const struct job_run nothing = { 0 };
    _cleanup_(job_freep) struct job *job = xcalloc(1, sizeof(*job));
    struct job_run *run = job_make_run(job);
    for (size_t i = 0; i < N_COLUMNS; i++) {
        char *base = columns[i].is_run ? (char *)run : (char *)job;
        int r = read_column(statement, (int)i, &columns[i], base + columns[i].offset, err);
        if (r < 0)
            return error_set(
                err, r, "database: job %" PRIu64 " has a damaged value in '%s'", job->id, columns[i].name);
    }
    if (job->state == JOB_NEW || job->state >= JOB_STATES || job->end >= END_KINDS ||
        job->stop_reason >= END_KINDS || job->idle_level >= IDLE_LEVELS ||
        run->requeue_cause >= REQUEUE_CAUSES || job->name == NULL || job->summary == NULL)
        return error_set(err, -EUCLEAN, "database: the row of job %" PRIu64 " is damaged", job->id);
    if (memcmp(run, &nothing, sizeof(*run)) == 0)
        job_run_free(take_ptr(job->run));
    *ret = take_ptr(job);
    return 0;
}

static struct job_nodes *copy_nodes(const struct job_nodes *nodes)
{
    return nodes != NULL ? job_nodes_copy(&nodes->nodes) : NULL;
}

static void *copy_record(const struct record_type *type, const void *record)
{
    if (record == NULL)
        return NULL;
    void *copy = xcalloc(1, type->size);
    record_copy(type, copy, record);
    return copy;
}

struct job *store_row_copy(const struct job *job)
{
    struct job *copy = xcalloc(1, sizeof(*copy));
    const struct row row = row_of(job);
    *copy = *job;
    copy->run = NULL;
    if (job->run != NULL)
        *job_make_run(copy) = *job->run;
    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (columns[i].is_run && job->run == NULL)
            continue;
        void *member = (columns[i].is_run ? (char *)copy->run : (char *)copy) + columns[i].offset;
        const void *source = member_of(&row, &columns[i]);
        if (columns[i].kind == COLUMN_TEXT)
            *(char **)member = xstrdup(*(const char *const *)source);
        else if (columns[i].kind == COLUMN_ASK)
            *(const struct job_ask **)member = ask_shared_hold(*(const struct job_ask *const *)source);
        else if (columns[i].kind == COLUMN_GRANTS)
            gpu_grants_copy(member, source);
        else if (columns[i].kind == COLUMN_RECORD)
            *(void **)member = copy_record(columns[i].record, *(const void *const *)source);
        else if (columns[i].kind == COLUMN_NODES)
            *(struct job_nodes **)member = copy_nodes(*(const struct job_nodes *const *)source);
    }
    return copy;
}

static bool is_same_record(const struct record_type *type, const void *a, const void *b)
{
    return a == b || (a != NULL && b != NULL && record_equal(type, a, b));
}

static bool is_same_column(const struct column *column, const void *a, const void *b)
{
    switch (column->kind) {
    case COLUMN_U32:
    case COLUMN_I32: return memcmp(a, b, sizeof(uint32_t)) == 0;
    case COLUMN_64: return memcmp(a, b, sizeof(uint64_t)) == 0;
    case COLUMN_BOOL: return *(const bool *)a == *(const bool *)b;
    case COLUMN_ASK:
        return job_ask_equal(*(const struct job_ask *const *)a, *(const struct job_ask *const *)b);
    case COLUMN_RECORD:
        return is_same_record(column->record, *(const void *const *)a, *(const void *const *)b);
    case COLUMN_NODES:
        return job_nodes_equal(*(const struct job_nodes *const *)a, *(const struct job_nodes *const *)b);
    case COLUMN_TEXT: return text_equal(*(const char *const *)a, *(const char *const *)b);
    default: return record_equal(&store_row_grants_record, a, b);
    }
}

const char *store_row_difference(const struct job *a, const struct job *b)
{
    const struct row one = row_of(a), other = row_of(b);
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (!is_same_column(&columns[i], member_of(&one, &columns[i]), member_of(&other, &columns[i])))
            return columns[i].name;
    return NULL;
}
