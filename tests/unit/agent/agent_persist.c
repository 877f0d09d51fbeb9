/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/persist.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

static char dir_path[] = "/tmp/mgpu-persist-XXXXXX";
static int n_synced;

int __wrap_fsync(int fd);
int __real_fsync(int fd);

int __wrap_fsync(int fd)
{
    n_synced++;
    return __real_fsync(fd);
}

TEST(an_epoch_outlives_its_agent)
{
    struct error err = { 0 };
    uint64_t epoch = 99;
    int fd = persist_open(dir_path, &err);
    assert_true(fd >= 0);
    assert_int_equal(persist_load_epoch(fd, PERSIST_EPOCH_HERE, &epoch, &err), 0);
    assert_int_equal(epoch, 0);
    n_synced = 0;
    assert_int_equal(persist_save_epoch(fd, PERSIST_EPOCH_HERE, 41, &err), 0);
    assert_int_equal(n_synced, 2); // the file and its directory
    assert_int_equal(persist_save_epoch(fd, PERSIST_EPOCH_HERE, 42, &err), 0);
    (void)close(fd);
    fd = persist_open(dir_path, &err);
    assert_int_equal(persist_load_epoch(fd, PERSIST_EPOCH_HERE, &epoch, &err), 0);
    assert_int_equal(epoch, 42);
    assert_int_equal(persist_load_epoch(fd, PERSIST_EPOCH_CLUSTER, &epoch, &err), 0);
    assert_int_equal(epoch, 0); // another controller's numbers
    (void)unlinkat(fd, "epoch", 0);
    (void)close(fd);
}

/* A small file system of our own, which takes root to mount. */
TEST(an_epoch_is_stored_without_a_free_inode)
{
    struct error err = { 0 };
    uint64_t epoch = 0;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", dir_path, "tmpfs", 0, "size=1m,nr_inodes=4") < 0)
        skip();
    int fd = persist_open(dir_path, &err);
    assert_int_equal(persist_save_epoch(fd, PERSIST_EPOCH_HERE, 9, &err), 0);
    for (int r = 0, i = 0; r >= 0; i++) {
        _cleanup_free_ char *name = xasprintf("inode%d", i);
        _cleanup_close_ int file = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        r = file;
    }
    n_synced = 0;
    assert_int_equal(persist_save_epoch(fd, PERSIST_EPOCH_HERE, 10, &err), 0);
    assert_int_equal(n_synced, 1); // in place
    assert_int_equal(persist_load_epoch(fd, PERSIST_EPOCH_HERE, &epoch, &err), 0);
    assert_int_equal(epoch, 10);
    (void)close(fd);
    assert_int_equal(umount(dir_path), 0);
}

TEST(a_damaged_epoch_is_an_error_not_a_zero)
{
    struct error err = { 0 };
    uint64_t epoch = 99;
    _cleanup_close_ int fd = persist_open(dir_path, &err);
    int file = openat(fd, "epoch", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(file, "4x", 2), 2);
    (void)close(file);
    assert_true(persist_load_epoch(fd, PERSIST_EPOCH_HERE, &epoch, &err) < 0);
    assert_int_equal(epoch, 99);
    (void)unlinkat(fd, "epoch", 0);
}

TEST(a_directory_that_others_may_change_is_refused)
{
    struct error err = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/node", dir_path);
    int fd = persist_open(dir_path, &err);
    (void)close(fd);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(persist_open(dir_path, &err), -EPERM);
    assert_int_equal(chmod(path, 0700), 0);
}

TEST(a_spool_of_another_boot_is_emptied_and_one_of_this_boot_is_not)
{
    struct error err = { 0 };
    _cleanup_close_ int spool = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char first[PERSIST_IDENTITY_SIZE], again[PERSIST_IDENTITY_SIZE];
    assert_int_equal(persist_enter_boot(spool, "boot-1", first, &err), 0);
    assert_int_equal(mkdirat(spool, "5.1.0.0", 0700), 0);
    assert_int_equal(mkdirat(spool, "other", 0700), 0);
    assert_int_equal(persist_enter_boot(spool, "boot-1", again, &err), 0);
    assert_string_equal(first, again);
    assert_int_equal(faccessat(spool, "5.1.0.0", F_OK, 0), 0);
    assert_int_equal(persist_enter_boot(spool, "boot-2", again, &err), 0);
    assert_int_equal(faccessat(spool, "5.1.0.0", F_OK, 0), -1);
    assert_int_equal(faccessat(spool, "other", F_OK, 0), 0);
    (void)unlinkat(spool, "other", AT_REMOVEDIR);
    (void)unlinkat(spool, "boot", 0);
}

TEST(a_spool_that_was_lost_is_another_one_of_the_same_boot)
{
    struct error err = { 0 };
    char first[PERSIST_IDENTITY_SIZE], second[PERSIST_IDENTITY_SIZE], third[PERSIST_IDENTITY_SIZE];
    _cleanup_close_ int spool = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(persist_enter_boot(spool, "boot-1", first, &err), 0);
    assert_int_equal(strncmp(first, "boot-1+", 7), 0);
    assert_int_equal(unlinkat(spool, "boot", 0), 0);
    assert_int_equal(persist_enter_boot(spool, "boot-1", second, &err), 0);
    assert_string_not_equal(first, second);
    assert_int_equal(persist_enter_boot(spool, "boot-11", third, &err), 0);
    assert_int_equal(strncmp(third, "boot-11+", 8), 0);
    (void)unlinkat(spool, "boot", 0);
}

/* Of an agent from before spools had names. */
TEST(a_spool_without_a_name_keeps_its_boot_id)
{
    struct error err = { 0 };
    char identity[PERSIST_IDENTITY_SIZE];
    _cleanup_close_ int spool = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(spool, "boot", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "boot-1", 6), 6);
    (void)close(fd);
    assert_int_equal(persist_enter_boot(spool, "boot-1", identity, &err), 0);
    assert_string_equal(identity, "boot-1");
    (void)unlinkat(spool, "boot", 0);
}

TEST(what_was_seen_is_read_back_and_garbage_is_nothing)
{
    struct error err = { 0 };
    _cleanup_close_ int fd = persist_open(dir_path, &err);
    const struct persist_seen written = { 3, 1700000000123, 99 };
    struct persist_seen seen;
    persist_load_seen(fd, PERSIST_EPOCH_HERE, &seen);
    assert_int_equal(seen.epoch, 0);
    persist_save_seen(fd, PERSIST_EPOCH_HERE, &written);
    persist_load_seen(fd, PERSIST_EPOCH_HERE, &seen);
    assert_memory_equal(&seen, &written, sizeof(seen));
    const struct persist_seen shorter = { 1, 7, 8 }, longest = { UINT64_MAX, INT64_MAX, UINT64_MAX };
    persist_save_seen(fd, PERSIST_EPOCH_HERE, &longest);
    persist_save_seen(fd, PERSIST_EPOCH_HERE, &shorter); // in the same place
    persist_load_seen(fd, PERSIST_EPOCH_HERE, &seen);
    assert_memory_equal(&seen, &shorter, sizeof(seen));
    assert_int_equal(file_write(fd, PERSIST_EPOCH_HERE, "3 17", 4, false), 0);
    persist_load_seen(fd, PERSIST_EPOCH_HERE, &seen);
    assert_int_equal(seen.epoch, 0);
    (void)unlinkat(fd, PERSIST_EPOCH_HERE, 0);
}

int main(void)
{
    if (mkdtemp(dir_path) == NULL)
        return EXIT_FAILURE;
    int failed = unit_tests_run(NULL, NULL);
    _cleanup_free_ char *node = xasprintf("%s/node", dir_path);
    (void)rmdir(node);
    (void)rmdir(dir_path);
    return failed;
}
