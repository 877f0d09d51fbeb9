/* SPDX-License-Identifier: MIT */
/*
 * Pages of ended jobs. One request reads at most SCAN_ROWS rows of the narrow table, however few match the
 * filter, and the wide row only of those that match.
 */
#include "store/store_ended.h"

#include <stdlib.h>

#include "base/memory.h"
#include "store/store_ended_scan.h"
#include "store/store_row.h"
#include "store/store_sqlite.h"

#define SCAN_ROWS 4000

struct page {
    struct store_request request;
    struct ended_scan scan;
    size_t limit, count;
    struct ended_row *rows;
    void (*on_page)(void *arg, const struct ended_row *rows, size_t count, const struct ended_place *next);
    void *arg;
};

static int read_job(struct store *store, uint64_t id, struct job **ret, struct error *err)
{
    sqlite3_stmt *select = store->statements[SQL_SELECT_JOB];
    (void)sqlite3_bind_int64(select, 1, (int64_t)id);
    int rc = sqlite3_step(select);
    int r = rc == SQLITE_ROW ? store_row_read(select, ret, err) : store_sql_fail(err, store->db, rc, "jobs");
    (void)sqlite3_reset(select);
    return r;
}

static int take_row(void *arg, struct store *store, const struct ended_found *found, struct error *err)
{
    struct page *page = arg;
    struct ended_row *row = &page->rows[page->count];
    *row = (struct ended_row){
        .held_ms = found->held_ms, .measured_ms = found->measured_ms, .used_ms = found->used_ms
    };
    int r = read_job(store, found->job, &row->job, err);
    if (r < 0)
        return r;
    page->count++;
    return page->count < page->limit ? 0 : 1;
}

static int run_page(struct store *store, struct store_request *request, struct error *err)
{
    struct page *page = (struct page *)request;
    page->rows = xcalloc(page->limit, sizeof(*page->rows));
    return ended_scan_run(&page->scan, store, SCAN_ROWS, take_row, page, err);
}

static void answer_page(struct store *store, struct store_request *request)
{
    const struct page *page = (const struct page *)request;
    page->on_page(page->arg, page->rows, page->count, page->scan.is_over ? NULL : &page->scan.after);
}

static void drop_page(struct store_request *request)
{
    const struct page *page = (const struct page *)request;
    page->on_page(page->arg, NULL, 0, NULL);
}

static void free_page(struct store_request *request)
{
    struct page *page = (struct page *)request;
    for (size_t i = 0; i < page->count; i++)
        job_free(page->rows[i].job);
    free(page->rows);
    ended_scan_clear(&page->scan);
    free(page);
}

static const struct store_request_kind page_kind = {
    .run = run_page, .answer = answer_page, .drop = drop_page, .free = free_page, .is_page = true
};

void store_fetch_ended(struct store *store, const struct ended_filter *filter,
    const struct ended_place *after, size_t limit,
    void (*on_page)(void *arg, const struct ended_row *rows, size_t count, const struct ended_place *next),
    void *arg)
{
    struct page *page = xcalloc(1, sizeof(*page));
    *page = (struct page){ .request.kind = &page_kind, .limit = limit, .on_page = on_page, .arg = arg };
    ended_scan_init(&page->scan, filter, after);
    store_thread_push(store, &page->request);
}
