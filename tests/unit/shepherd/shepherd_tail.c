/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "fixture.h"
#include "shepherd/orphan_tail.h"
#include "shepherd/tail.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

static char text[TAIL_SIZE];

/* A log as the command has it: it cannot be read through that descriptor. */
static int open_log(const struct fixture *f, const char *bytes, size_t length)
{
    int fd = open(f->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    return fd;
}

CASE(a_short_log_is_read_whole, f)
{
    _cleanup_close_ int fd = open_log(f, "one\ntwo", 7);
    assert_int_equal(tail_read(fd, 0, text), 7);
    assert_string_equal(text, "one\ntwo");
    assert_int_equal(tail_read(fd, 4, text), 3);
    assert_string_equal(text, "two");
    assert_int_equal(tail_read(fd, 7, text), 0);
}

CASE(a_log_of_exactly_the_space_loses_nothing, f)
{
    char bytes[USAGE_TAIL_MAX + 1];
    memset(bytes, 'a', sizeof(bytes));
    bytes[0] = '\n';
    _cleanup_close_ int fd = open_log(f, bytes, sizeof(bytes));
    assert_int_equal(tail_read(fd, 0, text), USAGE_TAIL_MAX);
    assert_int_equal(tail_read(fd, 1, text), USAGE_TAIL_MAX);
}

CASE(a_line_that_is_too_long_is_cut_between_characters, f)
{
    char bytes[3 * USAGE_TAIL_MAX];
    for (size_t i = 0; i < sizeof(bytes); i += 2)
        memcpy(bytes + i, "\xc3\xa4", 2);
    _cleanup_close_ int fd = open_log(f, bytes, sizeof(bytes));
    size_t length = tail_read(fd, 0, text);
    assert_in_range(length, USAGE_TAIL_MAX - 3, USAGE_TAIL_MAX);
    assert_memory_equal(text, "\xc3\xa4", 2);
}

CASE(without_its_init_it_is_read_as_the_user, f)
{
    _cleanup_close_ int fd = open_log(f, "before\nlast words\n", 18);
    struct shepherd shepherd = { .spool_fd = -1,
        .lock_fd = -1,
        .ctl_fd = -1,
        .exit_fd = -1,
        .exit_copy_fd = -1,
        .cgroup_fd = -1,
        .channel_fd = -1,
        .log_fd = fd,
        .log_start = 7,
        .spec = f->spec };
    orphan_tail_read(&shepherd, text);
    /* As root the file is still root's: the user may not read it. */
    assert_string_equal(text, is_root() ? "" : "last words\n");
    assert_int_equal(fchown(fd, f->spec.uid, f->spec.gid), 0);
    orphan_tail_read(&shepherd, text);
    assert_string_equal(text, "last words\n");
    shepherd.log_fd = -1;
    orphan_tail_read(&shepherd, text);
    assert_string_equal(text, "");
}

CASE(a_zero_in_it_does_not_end_it, f)
{
    _cleanup_close_ int fd = open_log(f, "a\0b\n", 4);
    assert_int_equal(tail_read(fd, 0, text), 4);
    assert_string_equal(text, "a?b\n");
}

CASE(a_log_that_the_job_cut_short_is_read_from_its_start, f)
{
    _cleanup_close_ int fd = open_log(f, "new\n", 4);
    assert_int_equal(tail_read(fd, 1000, text), 4);
}

CASE(what_is_no_file_or_was_locked_up_has_no_tail, f)
{
    _cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(tail_read(null, 0, text), 0);
    if (is_root())
        skip();
    _cleanup_close_ int fd = open_log(f, "secret\n", 7);
    assert_int_equal(fchmod(fd, 0200), 0);
    assert_int_equal(tail_read(fd, 0, text), 0);
}

CASE(a_log_that_was_renamed_is_still_read, f)
{
    _cleanup_close_ int fd = open_log(f, "mine\n", 5);
    assert_int_equal(unlink(f->log), 0);
    assert_int_equal(symlink("/etc/passwd", f->log), 0);
    assert_int_equal(tail_read(fd, 0, text), 5);
    assert_string_equal(text, "mine\n");
}

/* What `mgpu run` shows on a terminal: colours, a title, a cut sequence, and line ends with returns. */
CASE(a_log_of_a_terminal_is_read_as_its_text, f)
{
    static const char log[] =
        "\033]0;title\atitled\r\n\033[1;31mError:\033[0m x\r\n10%\r20%\r\n\033]2;t\033\\end\r\n\033[3";
    static const char plain[] = "titled\nError: x\n10%\r20%\nend\n";
    _cleanup_close_ int fd = open_log(f, log, sizeof(log) - 1);
    assert_int_equal(tail_read(fd, 0, text), sizeof(plain) - 1);
    assert_string_equal(text, plain);
}
