/* SPDX-License-Identifier: MIT */
/* An unreadable record counts as 0 or NULL here: detecting damage is the task of fsck. */
#include "store/store_functions.h"

#include "base/record_dense.h"
#include "job/earlier.h"
#include "job/event.h"
#include "job/usage.h"
#include "store/store_sql.h"

#define WHOLE_GPU 1000

static int decode(sqlite3_value *value, const struct record_type *type, void *ret)
{
    const void *bytes = sqlite3_value_blob(value);
    if (bytes == NULL)
        return -1;
    return record_decode(type, bytes, (size_t)sqlite3_value_bytes(value), ret, NULL);
}

static void granted_milli(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct job_event event;
    int64_t milli = 0;
    if (decode(values[0], &job_event_record, &event) == 0) {
        milli = event.behind == 0 ? (int64_t)gpu_grants_milli(&event.gpus) : 0;
        job_event_clear(&event);
    }
    sqlite3_result_int64(context, milli);
}

static void usage_milli(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct job_usage usage;
    if (decode(values[0], &job_usage_record, &usage) < 0) {
        sqlite3_result_null(context);
        return;
    }
    if ((usage.valid & USAGE_UTILIZATION) != 0)
        sqlite3_result_int64(
            context, usage.utilization_milli < WHOLE_GPU ? usage.utilization_milli : WHOLE_GPU);
    else
        sqlite3_result_null(context);
    job_usage_clear(&usage);
}

/* A number of an event, or NULL if the event cannot be read. */
static void event_number(
    sqlite3_context *context, sqlite3_value *value, int64_t (*number)(const struct job_event *event))
{
    struct job_event event;
    if (decode(value, &job_event_record, &event) < 0) {
        sqlite3_result_null(context);
        return;
    }
    sqlite3_result_int64(context, number(&event));
    job_event_clear(&event);
}

static int64_t cause_of(const struct job_event *event)
{
    return event->cause;
}

static void requeue_cause(sqlite3_context *context, int count, sqlite3_value **values)
{
    event_number(context, values[0], cause_of);
}

static int64_t parked_ms_of(const struct job_event *event)
{
    return event->parked_ms;
}

static void event_parked_ms(sqlite3_context *context, int count, sqlite3_value **values)
{
    event_number(context, values[0], parked_ms_of);
}

static int64_t end_of(const struct job_event *event)
{
    return event->end;
}

static void event_end(sqlite3_context *context, int count, sqlite3_value **values)
{
    event_number(context, values[0], end_of);
}

static int64_t exit_code_of(const struct job_event *event)
{
    return event->exit_code;
}

static void event_exit_code(sqlite3_context *context, int count, sqlite3_value **values)
{
    event_number(context, values[0], exit_code_of);
}

static void earlier_attempt(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct job_event requeued, start = { 0 };
    const char *node = (const char *)sqlite3_value_text(values[1]);
    if (decode(values[0], &job_event_record, &requeued) < 0)
        return;
    if (decode(values[2], &job_event_record, &start) < 0)
        start.log_path = NULL;
    struct job_earlier *earlier = job_earlier_new(&requeued, node, start.log_path);
    if (earlier != NULL) {
        _cleanup_buffer_ struct buffer bytes = { 0 };
        record_encode_dense(&job_earlier_record, earlier, &bytes);
        sqlite3_result_blob64(context, bytes.bytes, bytes.length, SQLITE_TRANSIENT);
    }
    job_earlier_free(earlier);
    job_event_clear(&requeued);
    job_event_clear(&start);
}

int store_functions_add(sqlite3 *db, struct error *err)
{
    static const struct {
        const char *name;
        int n_values;
        void (*run)(sqlite3_context *context, int count, sqlite3_value **values);
    } rows[] = {
        { "granted_milli", 1, granted_milli },
        { "usage_milli", 1, usage_milli },
        { "requeue_cause", 1, requeue_cause },
        { "event_parked_ms", 1, event_parked_ms },
        { "event_end", 1, event_end },
        { "event_exit_code", 1, event_exit_code },
        { "earlier_attempt", 3, earlier_attempt },
    };
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(rows) / sizeof(rows[0]); i++)
        rc = sqlite3_create_function_v2(
            db, rows[i].name, rows[i].n_values, flags, NULL, rows[i].run, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : store_sql_fail(err, db, rc, "database");
}
