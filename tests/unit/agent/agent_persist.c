/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/persist.h"
#include "base/memory.h"

static char dir_path[] = "/tmp/mgpu-persist-XXXXXX";

static void an_epoch_outlives_its_agent(void **state)
{
    struct error err = { 0 };
    uint64_t epoch = 99;
    int fd = persist_open(dir_path, &err);
    assert_true(fd >= 0);
    assert_int_equal(persist_load_epoch(fd, PERSIST_EPOCH_HERE, &epoch, &err), 0);
    assert_int_equal(epoch, 0);
    assert_int_equal(persist_save_epoch(fd, PERSIST_EPOCH_HERE, 41, &err), 0);
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

static void a_damaged_epoch_is_an_error_not_a_zero(void **state)
{
    struct error err = { 0 };
    uint64_t epoch = 99;
    int fd = persist_open(dir_path, &err);
    int file = openat(fd, "epoch", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(file, "4x", 2), 2);
    (void)close(file);
    assert_true(persist_load_epoch(fd, PERSIST_EPOCH_HERE, &epoch, &err) < 0);
    assert_int_equal(epoch, 99);
    (void)unlinkat(fd, "epoch", 0);
    (void)close(fd);
}

static void a_directory_that_others_may_change_is_refused(void **state)
{
    struct error err = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/node", dir_path);
    int fd = persist_open(dir_path, &err);
    (void)close(fd);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(persist_open(dir_path, &err), -EPERM);
    assert_int_equal(chmod(path, 0700), 0);
}

static void a_spool_of_another_boot_is_emptied_and_one_of_this_boot_is_not(void **state)
{
    struct error err = { 0 };
    int spool = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(persist_enter_boot(spool, "boot-1", &err), 0);
    assert_int_equal(mkdirat(spool, "5.1.0.0", 0700), 0);
    assert_int_equal(mkdirat(spool, "other", 0700), 0);
    assert_int_equal(persist_enter_boot(spool, "boot-1", &err), 0);
    assert_int_equal(faccessat(spool, "5.1.0.0", F_OK, 0), 0);
    assert_int_equal(persist_enter_boot(spool, "boot-2", &err), 0);
    assert_int_equal(faccessat(spool, "5.1.0.0", F_OK, 0), -1);
    assert_int_equal(faccessat(spool, "other", F_OK, 0), 0);
    (void)unlinkat(spool, "other", AT_REMOVEDIR);
    (void)unlinkat(spool, "boot", 0);
    (void)close(spool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_outlives_its_agent),
        cmocka_unit_test(a_damaged_epoch_is_an_error_not_a_zero),
        cmocka_unit_test(a_directory_that_others_may_change_is_refused),
        cmocka_unit_test(a_spool_of_another_boot_is_emptied_and_one_of_this_boot_is_not),
    };
    if (mkdtemp(dir_path) == NULL)
        return EXIT_FAILURE;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    _cleanup_free_ char *node = xasprintf("%s/node", dir_path);
    (void)rmdir(node);
    (void)rmdir(dir_path);
    return failed;
}
