/* SPDX-License-Identifier: MIT */
/*
 * A second connection to the file that a standby applies the log to. One read transaction lasts as long as
 * the store is open, so all answers, including those of the store's thread, see the same state.
 */

#include "store/store_dir.h"
#include "store/store_recording.h"
#include "store/store_sqlite.h"

static int open_connection(struct store *store, const char *dir, struct store_summary *ret_summary,
    struct store_position *ret_position, struct error *err)
{
    int r = store_dir_open(dir, &store->dir, &store->dirfd, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = store_path(store);
    r = store_sql_open(path, STORE_READ, &store->db, err);
    if (r == 0)
        r = store_sql_run(store->db, "BEGIN", err);
    if (r == 0)
        r = store_recording_position(store->db, ret_position, err); // fixes the state that is read
    if (r == 0)
        r = store_read_summary(store->db, ret_summary, err);
    if (r == 0)
        r = store_statement_prepare(store->db, store->statements, err);
    return r == 0 ? store_thread_start(store, err) : r;
}

int store_open_reading(const char *dir, const struct store_observer *observer, struct store **ret,
    struct store_summary *ret_summary, struct store_position *ret_position, struct error *err)
{
    struct store *store = xcalloc(1, sizeof(*store));
    store->dirfd = store->lockfd = store->thread.eventfd = store->thread.prompt_eventfd = -1;
    store->observer = *observer;
    int r = open_connection(store, dir, ret_summary, ret_position, err);
    if (r < 0) {
        store_close(store);
        return r;
    }
    *ret = store;
    return 0;
}
