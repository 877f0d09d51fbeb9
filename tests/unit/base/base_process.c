/* SPDX-License-Identifier: MIT */
/* A process is a pid together with its start time; a reused or wrong pair is never taken for it. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/process.h"
#include "unit_test.h"

/* A child that waits to be killed. */
static pid_t start_child(const char *name)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_NAME, name);
        (void)!write(ready[1], "x", 1);
        for (;;)
            (void)pause();
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void reap(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(the_boot_has_an_id_of_36_characters)
{
    char boot_id[BOOT_ID_SIZE], again[BOOT_ID_SIZE];
    assert_int_equal(process_boot_id(boot_id), 0);
    assert_int_equal(process_boot_id(again), 0);
    assert_int_equal(strlen(boot_id), 36);
    assert_string_equal(boot_id, again);
}

TEST(this_process_is_alive_with_its_own_start_time_only)
{
    uint64_t start = process_start_time(getpid());
    assert_true(start > 0);
    assert_true(process_is_alive(getpid(), start));
    assert_false(process_is_alive(getpid(), start + 1));
    assert_false(process_is_alive(getpid(), 0));
}

TEST(a_name_with_blanks_and_parentheses_does_not_confuse)
{
    pid_t plain = start_child("plain");
    pid_t odd = start_child(") R 1 (x) y");
    uint64_t a = process_start_time(plain), b = process_start_time(odd);
    assert_true(b >= a && b - a < 1000);
    reap(plain);
    reap(odd);
}

TEST(a_process_that_is_gone_has_no_start_time)
{
    pid_t pid = start_child("gone");
    uint64_t start = process_start_time(pid);
    reap(pid);
    assert_int_equal(process_start_time(pid), 0);
    assert_false(process_is_alive(pid, start));
    assert_int_equal(process_open(pid, start), -ESRCH);
}

TEST(a_reused_pid_is_not_opened)
{
    pid_t pid = start_child("other");
    uint64_t start = process_start_time(pid);
    assert_int_equal(process_open(pid, start - 1), -ESRCH);
    reap(pid);
}

TEST(a_signal_reaches_the_opened_process)
{
    pid_t pid = start_child("target");
    _cleanup_close_ int pidfd = process_open(pid, process_start_time(pid));
    assert_true(pidfd >= 0);
    assert_int_equal(process_signal(pidfd, SIGTERM), 0);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    assert_int_equal(process_signal(pidfd, SIGTERM), -ESRCH);
}

TEST(a_thread_that_waits_for_others_neither_runs_nor_could)
{
    struct process_times mine, again, theirs;
    pid_t pid = start_child("sleeper");
    if (process_read_times(getpid(), getpid(), &mine) == -ENOENT) {
        reap(pid);
        skip(); // a kernel that does not count them
    }
    assert_true(mine.ran_ns > 0 && mine.is_runnable);
    do
        assert_int_equal(process_read_times(getpid(), getpid(), &again), 0);
    while (again.ran_ns == mine.ran_ns);
    assert_true(again.ran_ns > mine.ran_ns && again.waited_ns >= mine.waited_ns);
    do
        assert_int_equal(process_read_times(pid, pid, &theirs), 0);
    while (theirs.is_runnable); // on its way to pause()
    reap(pid);
    assert_true(process_read_times(pid, pid, &theirs) < 0);
}
