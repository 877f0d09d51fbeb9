/* SPDX-License-Identifier: MIT */
/*
 * A full disk must not keep a running job from ending: its end needs a few pages. So new work is refused
 * while less than STORE_SPACE_MIN is free, and a file of STORE_RESERVE bytes is removed when even that is
 * used by others. The reserve is restored once it fits beside the minimum.
 */
#include "store/store_space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "store/store_sqlite.h"

/* Bytes available to this user; a very large number if the file system does not report it. */
static uint64_t free_bytes(const struct store *store)
{
    struct statvfs disk;
    if (fstatvfs(store->dirfd, &disk) < 0)
        return UINT64_MAX;
    return (uint64_t)disk.f_bavail * disk.f_frsize;
}

bool store_space_is_out(const struct store *store, struct error *err)
{
    struct statvfs disk;
    if (fstatvfs(store->dirfd, &disk) < 0)
        return false;
    bool has_inodes = disk.f_files == 0 || disk.f_favail > 0; // 0: the file system has no fixed number
    uint64_t bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (has_inodes && bytes >= STORE_OPEN_NEEDS)
        return false;
    if (has_inodes)
        (void)error_set(err, -ENOSPC, "the disk of %s is full: %llu KiB free, %d KiB required to start",
            store->dir, (unsigned long long)bytes / 1024, STORE_OPEN_NEEDS / 1024);
    else
        (void)error_set(err, -ENOSPC, "the disk of %s is full: no free inodes", store->dir);
    (void)error_hint(err, "free some space there and start mgpud again; the store is unchanged");
    return true;
}

static int fill(int fd)
{
    if (fallocate(fd, 0, 0, STORE_RESERVE) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return -errno;
    static const char zeros[65536];
    int r = 0;
    for (size_t written = 0; r == 0 && written < STORE_RESERVE; written += sizeof(zeros))
        r = write_all(fd, zeros, sizeof(zeros));
    return r;
}

static bool make_reserve(struct store *store)
{
    _cleanup_close_ int fd =
        openat(store->dirfd, STORE_RESERVE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    struct stat file;
    if (fstat(fd, &file) == 0 && (uint64_t)file.st_blocks * 512 >= STORE_RESERVE)
        return true;
    if (fill(fd) == 0)
        return true;
    (void)unlinkat(store->dirfd, STORE_RESERVE_NAME, 0);
    return false;
}

/* A snapshot, logs and SQLite's extra files need some. */
static bool lacks_inodes(const struct store *store)
{
    struct statvfs disk;
    return fstatvfs(store->dirfd, &disk) == 0 && disk.f_files > 0 && disk.f_favail < STORE_INODES_MIN;
}

static void check(struct store *store)
{
    struct store_space *space = &store->space;
    uint64_t bytes = free_bytes(store);
    space->is_low = bytes < STORE_SPACE_MIN;
    space->lacks_inodes = lacks_inodes(store);
    if (!space->has_reserve && bytes >= STORE_SPACE_MIN + STORE_RESERVE)
        space->has_reserve = make_reserve(store);
    space->looked_ms = clock_boot_ms();
}

void store_space_open(struct store *store)
{
    if (free_bytes(store) < STORE_OPEN_NEEDS)
        (void)unlinkat(store->dirfd, STORE_RESERVE_NAME, 0);
    else
        store->space.has_reserve = make_reserve(store);
    check(store);
}

bool store_space_give_up(struct store *store)
{
    if (!atomic_exchange(&store->space.has_reserve, false))
        return false;
    return unlinkat(store->dirfd, STORE_RESERVE_NAME, 0) == 0;
}

void store_space_check(struct store *store)
{
    if (clock_boot_ms() - store->space.looked_ms >= STORE_SPACE_AGE)
        check(store);
}

static int run_look(struct store *store, struct store_request *request, struct error *err)
{
    check(store);
    store->space.is_asked = false;
    return 0;
}

static const struct store_request_kind look_kind = { .run = run_look };

bool store_lacks_inodes(const struct store *store)
{
    return store->space.lacks_inodes;
}

bool store_space_is_short(const struct store *store)
{
    return store->space.is_low || store->space.lacks_inodes || !store->space.has_reserve;
}

bool store_is_full(struct store *store)
{
    struct store_space *space = &store->space;
    if (clock_boot_ms() - space->looked_ms >= STORE_SPACE_AGE && !atomic_exchange(&space->is_asked, true)) {
        struct store_request *request = xcalloc(1, sizeof(*request));
        request->kind = &look_kind;
        store_thread_push(store, request);
    }
    return store_space_is_short(store);
}
