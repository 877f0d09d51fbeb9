/* SPDX-License-Identifier: MIT */
/* Lists the ids of jobs, in pieces so short that commits are not delayed. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/store_sqlite.h"

#define ROWS_MAX 4096U // examined for one answer

struct fetch_ids {
    struct store_request request;
    struct store_ids_query query;
    char *name;
    uint64_t ids[ROWS_MAX];
    size_t count;
    uint64_t next;
    void (*on_ids)(void *arg, const uint64_t *ids, size_t count, uint64_t next);
    void *arg;
};

static bool is_wanted(const struct fetch_ids *fetch, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 2);
    if (fetch->query.uid != STORE_ANY_USER && sqlite3_column_int64(row, 1) != fetch->query.uid)
        return false;
    if (fetch->query.has_no_elements && sqlite3_column_int64(row, 3) != 0)
        return false;
    return fetch->name == NULL || (name != NULL && fnmatch(fetch->name, name, 0) == 0);
}

static int run_fetch_ids(struct store *store, struct store_request *request, struct error *err)
{
    struct fetch_ids *fetch = (struct fetch_ids *)request;
    bool is_up = fetch->query.order == STORE_OLDEST_FIRST;
    sqlite3_stmt *rows = store->statements[is_up ? SQL_SELECT_IDS_UP : SQL_SELECT_IDS_DOWN];
    size_t most = fetch->query.most < ROWS_MAX ? fetch->query.most : ROWS_MAX, n = 0;
    uint64_t from = fetch->query.from < INT64_MAX ? fetch->query.from : INT64_MAX;
    (void)sqlite3_bind_int64(rows, 1, (int64_t)from);
    (void)sqlite3_bind_int64(rows, 2, (int64_t)most);
    int rc;
    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        fetch->next = (uint64_t)sqlite3_column_int64(rows, 0);
        if (is_wanted(fetch, rows))
            fetch->ids[fetch->count++] = fetch->next;
        n++;
    }
    if (n < most)
        fetch->next = 0;
    int r = rc == SQLITE_DONE ? 0 : store_sql_fail(err, store->db, rc, "jobs");
    (void)sqlite3_reset(rows);
    return r;
}

static void answer_fetch_ids(struct store *store, struct store_request *request)
{
    struct fetch_ids *fetch = (struct fetch_ids *)request;
    fetch->on_ids(fetch->arg, fetch->ids, fetch->count, fetch->next);
}

static void drop_fetch_ids(struct store_request *request)
{
    const struct fetch_ids *fetch = (const struct fetch_ids *)request;
    fetch->on_ids(fetch->arg, NULL, 0, 0);
}

static void free_fetch_ids(struct store_request *request)
{
    free(((struct fetch_ids *)request)->name);
    free(request);
}

static const struct store_request_kind fetch_ids_kind = {
    .run = run_fetch_ids, .answer = answer_fetch_ids, .drop = drop_fetch_ids, .free = free_fetch_ids
};

void store_fetch_ids(struct store *store, const struct store_ids_query *query,
    void (*on_ids)(void *arg, const uint64_t *ids, size_t count, uint64_t next), void *arg)
{
    struct fetch_ids *fetch = xcalloc(1, sizeof(*fetch));
    fetch->request.kind = &fetch_ids_kind;
    fetch->query = *query;
    fetch->name = query->name != NULL ? xstrdup(query->name) : NULL;
    fetch->on_ids = on_ids;
    fetch->arg = arg;
    store_thread_push(store, &fetch->request);
}
