/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "fixture.h"
#include "shepherd/output.h"
#include "unit_test.h"

#define CASE(name) TEST_WITH(name, fixture_setup, fixture_teardown)

static char path[160];

static const char *in_home(const struct fixture *f, const char *name)
{
    (void)snprintf(path, sizeof(path), "%s/%s", f->home, name);
    return path;
}

static void assert_refused(const char *name, enum launch_step expected)
{
    enum launch_step step = STEP_NONE;
    assert_true(output_open(name, OUTPUT_NAMED, &step) < 0);
    assert_int_equal(step, expected);
}

CASE(a_new_log_belongs_to_its_user_alone)
{
    enum launch_step step;
    struct stat st;
    _cleanup_close_ int fd = output_open(in_home(*state, "new.log"), OUTPUT_DEFAULT, &step);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

CASE(a_named_log_has_the_mode_that_the_umask_leaves)
{
    enum launch_step step;
    struct stat st;
    mode_t before = umask(027);
    _cleanup_close_ int fd = output_open(in_home(*state, "named.log"), OUTPUT_NAMED, &step);
    (void)umask(before);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
}

CASE(a_named_log_is_appended_to)
{
    enum launch_step step;
    for (int i = 0; i < 2; i++) {
        _cleanup_close_ int fd = output_open(in_home(*state, "twice.log"), OUTPUT_NAMED, &step);
        assert_int_equal(write(fd, "line\n", 5), 5);
    }
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 10);
}

CASE(a_default_log_makes_its_directories)
{
    enum launch_step step;
    struct stat st;
    _cleanup_close_ int fd = output_open(in_home(*state, "a/b/7.log"), OUTPUT_DEFAULT, &step);
    assert_true(fd >= 0);
    assert_int_equal(stat(in_home(*state, "a"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

CASE(a_log_of_another_instance_is_never_written_to)
{
    enum launch_step step;
    struct stat st;
    _cleanup_close_ int other = output_open(in_home(*state, "7.log"), OUTPUT_DEFAULT, &step);
    assert_true(other >= 0);
    /* Also before it has any text. */
    assert_int_equal(output_open(path, OUTPUT_DEFAULT, &step), -EEXIST);
    _cleanup_free_ char *own = output_own_name(path, UINT64_C(0x1234567badcafe));
    assert_non_null(strstr(own, "/7-7badcafe.log"));
    for (int i = 0; i < 2; i++) { // a shepherd that died before the start was followed by another
        _cleanup_close_ int fd = output_open(own, OUTPUT_OWN, &step);
        assert_int_equal(write(fd, "line\n", 5), 5);
    }
    assert_int_equal(fstat(other, &st), 0);
    assert_int_equal(st.st_size, 0);
}

CASE(links_fifos_and_directories_are_refused)
{
    assert_int_equal(symlink("/tmp/elsewhere", in_home(*state, "link")), 0);
    assert_refused(path, STEP_LOG);
    assert_int_equal(mkfifo(in_home(*state, "fifo"), 0600), 0);
    assert_refused(path, STEP_LOG_KIND);
    _cleanup_close_ int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_refused(path, STEP_LOG_KIND);
    assert_refused(in_home(*state, "."), STEP_LOG_KIND);
    assert_refused("/dev/zero", STEP_LOG_KIND);
}

CASE(another_users_file_is_refused)
{
    if (!is_root())
        skip();
    (void)close(open(in_home(*state, "other"), O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    assert_int_equal(chown(path, FIXTURE_JOB_UID, FIXTURE_JOB_UID), 0);
    assert_refused(path, STEP_LOG_OWNER);
}

CASE(the_null_device_is_fine)
{
    enum launch_step step;
    _cleanup_close_ int fd = output_open("/dev/null", OUTPUT_NAMED, &step);
    assert_true(fd >= 0);
}
