/* SPDX-License-Identifier: MIT */
/*
 * Columns are those of STORE_ENDED_COLUMNS. The table is ordered by time and has no other index, because each
 * would cost an additional page write per ended job; other conditions are checked row by row.
 */
#include "store/store_ended_scan.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/store_sqlite.h"

enum { JOB, UID, GID, ENDED_MS, OUTCOME, IS_ARRAY, WAIT_MS, HELD_MS, MEASURED_MS, USED_MS, NODE, NAME };

void ended_scan_init(
    struct ended_scan *scan, const struct ended_filter *filter, const struct ended_place *after)
{
    *scan = (struct ended_scan){ .filter = *filter };
    scan->filter.name = xstrdup(filter->name);
    scan->after = after != NULL ? *after : (struct ended_place){ .ended_ms = filter->until_ms };
}

void ended_scan_clear(struct ended_scan *scan)
{
    free((char *)(uintptr_t)scan->filter.name);
    *scan = (struct ended_scan){ 0 };
}

static bool is_wanted(const struct ended_filter *filter, sqlite3_stmt *row)
{
    if (sqlite3_column_int(row, IS_ARRAY) != 0)
        return false;
    if (filter->has_user && filter->uid != (uint32_t)sqlite3_column_int64(row, UID))
        return false;
    if (filter->outcomes != 0 && (filter->outcomes & (1U << sqlite3_column_int(row, OUTCOME))) == 0)
        return false;
    return filter->name == NULL ||
           fnmatch(filter->name, (const char *)sqlite3_column_text(row, NAME), 0) == 0;
}

static struct ended_found read_found(sqlite3_stmt *row)
{
    return (struct ended_found){
        .job = (uint64_t)sqlite3_column_int64(row, JOB),
        .uid = (uint32_t)sqlite3_column_int64(row, UID),
        .gid = (uint32_t)sqlite3_column_int64(row, GID),
        .ended_ms = sqlite3_column_int64(row, ENDED_MS),
        .has_wait = sqlite3_column_type(row, WAIT_MS) != SQLITE_NULL,
        .wait_ms = sqlite3_column_int64(row, WAIT_MS),
        .held_ms = sqlite3_column_int64(row, HELD_MS),
        .measured_ms = sqlite3_column_int64(row, MEASURED_MS),
        .used_ms = sqlite3_column_int64(row, USED_MS),
        .node = (const char *)sqlite3_column_text(row, NODE),
    };
}

int ended_scan_run(struct ended_scan *scan, struct store *store, size_t rows,
    int (*visit)(void *arg, struct store *store, const struct ended_found *found, struct error *err),
    void *arg, struct error *err)
{
    sqlite3_stmt *select = store->statements[SQL_SCAN_ENDED];
    (void)sqlite3_bind_int64(select, 1, scan->after.ended_ms);
    (void)sqlite3_bind_int64(select, 2, (int64_t)scan->after.job);
    (void)sqlite3_bind_int64(select, 3, scan->filter.since_ms);
    (void)sqlite3_bind_int64(select, 4, (int64_t)rows);
    size_t seen = 0;
    int r = 0, rc = SQLITE_DONE;
    while (r == 0 && (rc = sqlite3_step(select)) == SQLITE_ROW) {
        struct ended_found found = read_found(select);
        seen++;
        scan->after = (struct ended_place){ found.ended_ms, found.job };
        if (is_wanted(&scan->filter, select))
            r = visit(arg, store, &found, err);
    }
    scan->is_over = r == 0 && rc == SQLITE_DONE && seen < rows;
    if (r == 0 && rc != SQLITE_DONE)
        r = store_sql_fail(err, store->db, rc, "ended");
    (void)sqlite3_reset(select);
    return r < 0 ? r : 0;
}
