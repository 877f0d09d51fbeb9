/* SPDX-License-Identifier: MIT */
/*
 * DIR/backup/mgpu-NNNNNNNN.db: numbered upwards, so that a clock that was set back cannot make a new snapshot
 * look like the oldest. It is written under another name, marked as a snapshot, checked (store_verify.c),
 * synced and renamed. It is copied consistently through its own connection: commits continue on the
 * store's thread, however slow the disk is.
 */
#include "store/store_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utc.h"
#include "store/store_schema.h"
#include "store/store_sqlite.h"
#include "store/store_verify.h"

#define SNAPSHOT_PREFIX      "mgpu-"
#define SNAPSHOT_FORMAT      SNAPSHOT_PREFIX "%08" PRIu64 ".db"
#define SNAPSHOT_UNFINISHED  "unfinished.db"
#define SNAPSHOT_NUMBERS_MAX 4096 // directory entries examined

struct numbers {
    uint64_t items[SNAPSHOT_NUMBERS_MAX];
    size_t count;
};

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void name_of(uint64_t number, char name[64])
{
    (void)snprintf(name, 64, SNAPSHOT_FORMAT, number);
}

/* The numbers of the snapshots in DIR/backup, oldest first. */
static void list(int backupfd, struct numbers *numbers)
{
    numbers->count = 0;
    int fd = openat(backupfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        closep(&fd);
        return;
    }
    const struct dirent *entry;
    while (numbers->count < SNAPSHOT_NUMBERS_MAX && (entry = readdir(dir)) != NULL) {
        char name[64];
        if (strncmp(entry->d_name, SNAPSHOT_PREFIX, strlen(SNAPSHOT_PREFIX)) != 0)
            continue;
        uint64_t number = strtoull(entry->d_name + strlen(SNAPSHOT_PREFIX), NULL, 10);
        name_of(number, name); // and back again: other names are not snapshots
        if (strcmp(name, entry->d_name) == 0)
            numbers->items[numbers->count++] = number;
    }
    (void)closedir(dir);
    qsort(numbers->items, numbers->count, sizeof(numbers->items[0]), compare);
}

static int open_backup(int dirfd)
{
    return openat(dirfd, STORE_BACKUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

char *store_snapshot_newest(int dirfd)
{
    _cleanup_close_ int backupfd = open_backup(dirfd);
    if (backupfd < 0)
        return NULL;
    struct numbers numbers;
    list(backupfd, &numbers);
    if (numbers.count == 0)
        return NULL;
    char name[64];
    name_of(numbers.items[numbers.count - 1], name);
    return xasprintf("%s/%s", STORE_BACKUP, name);
}

int store_snapshot_hint(int dirfd, const char *dir, struct error *err)
{
    _cleanup_free_ char *newest = store_snapshot_newest(dirfd);
    if (newest == NULL)
        return error_hint(err,
            "there is no snapshot in %s/%s; restore the directory from a backup, or move it away to start "
            "with an empty queue",
            dir, STORE_BACKUP);
    struct stat file;
    char when[32] = "";
    if (fstatat(dirfd, newest, &file, AT_SYMLINK_NOFOLLOW) == 0)
        utc_format((int64_t)file.st_mtim.tv_sec * 1000, when, sizeof(when));
    return error_hint(err,
        "restore the newest snapshot, of %.19sZ: cd %s && mkdir -p bad && mv %s* bad && cp -p %s %s", when,
        dir, STORE_DATABASE, newest, STORE_DATABASE);
}

char *store_snapshot_copy_path(const struct store *store)
{
    return xasprintf("%s/%s/%s", store->dir, STORE_BACKUP, SNAPSHOT_UNFINISHED);
}

void store_snapshot_discard(struct store *store)
{
    (void)unlinkat(store->dirfd, STORE_BACKUP "/" SNAPSHOT_UNFINISHED, 0);
}

/* SQLite creates files according to the umask; this one is created before, with mode 0600. */
static int make_file(const struct store *store, struct error *err)
{
    if (mkdirat(store->dirfd, STORE_BACKUP, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create %s/%s", store->dir, STORE_BACKUP);
    _cleanup_close_ int backupfd = open_backup(store->dirfd);
    if (backupfd < 0)
        return error_set_errno(err, -errno, "cannot open %s/%s", store->dir, STORE_BACKUP);
    (void)unlinkat(backupfd, SNAPSHOT_UNFINISHED, 0);
    _cleanup_close_ int fd =
        openat(backupfd, SNAPSHOT_UNFINISHED, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create a snapshot in %s/%s", store->dir, STORE_BACKUP);
    return 0;
}

/* The copy's own journal would be a write-ahead log beside it, so it becomes a plain file first. */
static int mark(sqlite3 *copy, struct error *err)
{
    _cleanup_buffer_ struct buffer sql = { 0 };
    buffer_printf(
        &sql, "PRAGMA journal_mode = DELETE; UPDATE meta SET value = %d WHERE name = 'mark'", STORE_SNAPSHOT);
    return store_sql_run(copy, buffer_text(&sql), err);
}

static int copy(struct store *store, sqlite3 *from, struct error *err)
{
    _cleanup_free_ char *path = store_snapshot_copy_path(store);
    _cleanup_database_ sqlite3 *to = NULL;
    int r = make_file(store, err);
    if (r == 0)
        r = store_sql_open_plain(path, &to, err);
    if (r == 0) // the only sync is at the end; an interrupted snapshot is discarded
        r = store_sql_run(to, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF", err);
    if (r == 0)
        r = store_sql_copy(
            from, to, "snapshot", &store->observer.progress, &store->verifier.is_stopping, err);
    if (r == 0)
        r = mark(to, err);
    if (r < 0)
        store_snapshot_discard(store);
    return r;
}

static void remove_old(int backupfd)
{
    struct numbers numbers;
    char name[64];
    list(backupfd, &numbers);
    for (size_t i = 0; i + STORE_SNAPSHOTS_KEPT < numbers.count; i++) {
        name_of(numbers.items[i], name);
        (void)unlinkat(backupfd, name, 0);
    }
}

static int sync_file(int dirfd, const char *name)
{
    _cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int store_snapshot_keep(struct store *store, struct error *err)
{
    struct numbers numbers;
    char name[64];
    _cleanup_close_ int backupfd = open_backup(store->dirfd);
    if (backupfd < 0)
        return error_set_errno(err, -errno, "cannot open %s/%s", store->dir, STORE_BACKUP);
    list(backupfd, &numbers);
    name_of(numbers.count > 0 ? numbers.items[numbers.count - 1] + 1 : 1, name);
    int r = sync_file(backupfd, SNAPSHOT_UNFINISHED);
    if (r == 0 && renameat(backupfd, SNAPSHOT_UNFINISHED, backupfd, name) < 0)
        r = -errno;
    if (r == 0 && fsync(backupfd) < 0)
        r = -errno;
    if (r < 0) {
        store_snapshot_discard(store);
        return error_set_errno(err, r, "cannot put snapshot %s into %s/%s", name, store->dir, STORE_BACKUP);
    }
    remove_old(backupfd);
    return 0;
}

int store_snapshot_take(struct store *store, struct error *err)
{
    int r = copy(store, store->db, err);
    return r == 0 ? store_snapshot_keep(store, err) : r;
}

int store_snapshot_write(struct store *store, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", store->dir, STORE_DATABASE);
    _cleanup_database_ sqlite3 *from = NULL;
    int r = store_sql_open(path, STORE_READ, &from, err);
    return r == 0 ? copy(store, from, err) : r;
}

static int run_snapshot(struct store *store, struct store_request *request, struct error *err)
{
    if (!store_verify_is_busy(store))
        store_verify_begin(store);
    return 0;
}

static const struct store_request_kind snapshot_kind = { .run = run_snapshot };

void store_snapshot(struct store *store)
{
    struct store_request *request = xcalloc(1, sizeof(*request));
    request->kind = &snapshot_kind;
    store_thread_push(store, request);
}
