/* SPDX-License-Identifier: MIT */
/* A new store is built under another name and renamed, so that an incomplete store never has the store's
 * name. */
#include "store/store_create.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "store/store_schema.h"
#include "store/store_sqlite.h"

#define UNFINISHED "unfinished.db"

/* A commit writes each page it changes as a whole, and a change of a job is a few small rows: with SQLite's
 * usual 4096, a job is 73 KiB in the log instead of 26, and with 1024 an element of an array 15 instead of 9.
 * A store keeps the size that it was created with. */
#define PAGE_BYTES "512"

static int make_instance(char instance[33], struct error *err)
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return error_set_errno(err, -errno, "cannot get random bytes");
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(instance + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int fill(const struct store *store, const char *instance, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", store->dir, UNFINISHED);
    _cleanup_database_ sqlite3 *db = NULL;
    int r = store_sql_open_plain(path, &db, err);
    if (r < 0)
        return r;
    r = store_sql_run(db,
        "PRAGMA page_size = " PAGE_BYTES "; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL", err);
    return r == 0 ? store_schema_create(db, instance, err) : r;
}

int store_create(struct store *store, struct error *err)
{
    char instance[33] = "";
    int r = make_instance(instance, err);
    if (r < 0)
        return r;
    (void)unlinkat(store->dirfd, UNFINISHED, 0);
    (void)unlinkat(store->dirfd, UNFINISHED "-journal", 0);
    _cleanup_close_ int fd =
        openat(store->dirfd, UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create a store in %s", store->dir);
    r = fill(store, instance, err);
    if (r < 0)
        return error_wrap(err, "cannot create a store in %s", store->dir);
    if (renameat(store->dirfd, UNFINISHED, store->dirfd, STORE_DATABASE) < 0 || fsync(store->dirfd) < 0)
        return error_set_errno(err, -errno, "cannot create %s/%s", store->dir, STORE_DATABASE);
    return 0;
}
