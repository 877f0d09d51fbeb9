/* SPDX-License-Identifier: MIT */
/* Whether the kernel lets a container's root lower its score differs, so that a file stands in for /proc. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/node/daemon_priority.h"
#include "unit_test.h"

/* The score afterwards. */
static void assert_score(const char *before, const char *expected)
{
    char after[8] = "";
    int fd = memfd_create("score", MFD_CLOEXEC);
    assert_int_equal(write(fd, before, strlen(before)), strlen(before));
    assert_int_equal(daemon_priority_reset_oom_score(fd), 0);
    assert_true(pread(fd, after, sizeof(after) - 1, 0) > 0);
    after[strlen(expected)] = '\0'; // the kernel replaces the whole number, a file does not
    assert_string_equal(after, expected);
    (void)close(fd);
}

TEST(a_spared_process_becomes_as_others)
{
    assert_score("-1000\n", "0");
    assert_score("-1\n", "0");
}

TEST(a_score_that_is_higher_stays)
{
    assert_score("0\n", "0\n");
    assert_score("300\n", "300\n");
}

TEST(a_score_that_cannot_be_written_is_an_error)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    assert_int_equal(daemon_priority_reset_oom_score(fd), -EBADF);
    (void)close(fd);
}

TEST(priorities_become_usual)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpriority(PRIO_PROCESS, 0, 5);
        int r = daemon_priority_drop();
        int expected = geteuid() == 0 ? 0 : 5; // without root nothing changes
        _exit(r == 0 && getpriority(PRIO_PROCESS, 0) == expected && sched_getscheduler(0) == SCHED_OTHER ? 0
                                                                                                         : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
}
