/* SPDX-License-Identifier: MIT */
/* A disk that is full for real: a small tmpfs, which takes root to mount; without it the tests are skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_sqlite.h"
#include "store_fixture.h"
#include "unit_test.h"

#define DISK      "size=24m"
#define LOOKS_MAX 80

static bool can_mount;
static char mount_point[] = "/tmp/mgpu-space-XXXXXX";

/* Takes all the space there is and returns the file that has it. */
static void fill_disk(void)
{
    static const char block[65536];
    _cleanup_free_ char *path = xasprintf("%s/ballast", mount_point);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof(block)) > 0)
        continue;
    while (write(fd, block, 1) > 0)
        continue;
}

static void empty_disk(void)
{
    _cleanup_free_ char *path = xasprintf("%s/ballast", mount_point);
    assert_int_equal(unlink(path), 0);
}

static int on_setup(void **state)
{
    if (!can_mount)
        return 0;
    if (mount("tmpfs", mount_point, "tmpfs", 0, DISK) < 0)
        return -1;
    return fixture_setup(state);
}

static int on_teardown(void **state)
{
    if (!can_mount)
        return 0;
    (void)fixture_teardown(state);
    return umount(mount_point);
}

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, on_setup, on_teardown)

/* What store_is_full says of the disk as it is now. The batch comes back after the reserve was tried again.
 */
static bool is_full_now(struct fixture *fixture)
{
    for (int i = 0; i < 2; i++) {
        fixture->store->space.looked_ms = INT64_MIN / 2;
        (void)store_is_full(fixture->store);
        fixture->batch = store_batch_new(++fixture->next_batch);
        fixture_commit_all(fixture);
    }
    return store_is_full(fixture->store);
}

CASE(jobs_end_on_a_full_disk_and_new_work_is_refused, fixture)
{
    if (!can_mount)
        skip();
    struct job *jobs[200];
    for (uint32_t i = 0; i < 200; i++) {
        jobs[i] = fixture_submit(fixture, NULL);
        fixture_allocate(fixture, jobs[i], i, 0);
    }
    fixture_commit_all(fixture);
    assert_false(store_is_full(fixture->store));
    fill_disk();
    assert_true(is_full_now(fixture));
    for (uint32_t i = 0; i < 200; i++) {
        fixture_event(fixture, jobs[i], EVENT_ENDED);
        fixture_commit_all(fixture);
        job_free(jobs[i]);
    }
    assert_int_equal(access(fixture_path(fixture, "reserve"), F_OK), -1);
    assert_true(store_is_full(fixture->store));
    assert_int_equal(fixture_fsck(fixture), 0);
    empty_disk();
    assert_false(is_full_now(fixture));
    assert_int_equal(access(fixture_path(fixture, "reserve"), F_OK), 0);
}

CASE(an_idle_store_notices_that_there_is_space_again, fixture)
{
    if (!can_mount)
        skip();
    fill_disk();
    assert_true(is_full_now(fixture));
    empty_disk();
    for (int i = 0; i < LOOKS_MAX && store_space_is_short(fixture->store); i++)
        (void)poll(NULL, 0, STORE_SPACE_AGE);
    assert_false(store_space_is_short(fixture->store));
}

CASE(a_start_on_a_full_disk_uses_the_reserve, fixture)
{
    if (!can_mount)
        skip();
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    fill_disk();
    fixture_open(fixture);
    assert_true(store_is_full(fixture->store));
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(a_disk_without_any_space_ends_the_store_and_loses_nothing, fixture)
{
    if (!can_mount)
        skip();
    uint64_t acknowledged = 0;
    fill_disk();
    while (!fixture->has_failed) {
        fixture_run_job(fixture, 0);
        if (fixture_wait(fixture, fixture_commit(fixture)))
            acknowledged = fixture->next_seq - 1;
        fill_disk();
    }
    fixture_close(fixture);
    empty_disk();
    fixture_open(fixture);
    assert_true(fixture->summary.last_event >= acknowledged);
    assert_int_equal(fixture_fsck(fixture), 0);
    assert_false(is_full_now(fixture));
}

/* The message for a full disk does not advise moving the store away. */
CASE(a_start_without_any_space_is_not_called_damage, fixture)
{
    if (!can_mount)
        skip();
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_crash(fixture);
    assert_int_equal(unlink(fixture_path(fixture, "reserve")), 0);
    assert_int_equal(unlink(fixture_path(fixture, "mgpu.db-shm")), 0);
    fill_disk();
    assert_int_equal(fixture_try_open(fixture), -ENOSPC);
    assert_non_null(strstr(fixture->err.message, "full"));
    assert_non_null(strstr(fixture->err.hint, "free some space"));
    empty_disk();
    fixture_open(fixture);
    assert_int_equal(fixture->summary.jobs, 1);
}

CASE(a_start_without_any_inode_is_not_called_damage, fixture)
{
    if (!can_mount)
        skip();
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_crash(fixture);
    assert_int_equal(unlink(fixture_path(fixture, "mgpu.db-shm")), 0);
    assert_int_equal(mount("none", mount_point, NULL, MS_REMOUNT, DISK ",nr_inodes=7"), 0);
    for (unsigned i = 0; i < 7; i++) {
        _cleanup_free_ char *path = xasprintf("%s/inode%u", mount_point, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0) // until no inode is left
            assert_int_equal(close(fd), 0);
    }
    int r = fixture_try_open(fixture);
    assert_int_equal(r, -ENOSPC);
    assert_non_null(strstr(fixture->err.message, "inodes"));
    assert_int_equal(mount("none", mount_point, NULL, MS_REMOUNT, DISK ",nr_inodes=1000"), 0);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.jobs, 1);
}

int main(void)
{
    can_mount = geteuid() == 0 && mkdtemp(mount_point) != NULL && unshare(CLONE_NEWNS) == 0 &&
                mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    (void)setenv("TMPDIR", can_mount ? mount_point : "/tmp", 1);
    int failures = unit_tests_run(NULL, NULL);
    (void)rmdir(mount_point);
    return failures;
}
