/* SPDX-License-Identifier: MIT */
/* Each in its own child, because the sandbox cannot be left. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "unit_test.h"

#define UNKNOWN 77 // this kernel or processor has no filters

/* The exit status of a child that enters the sandbox and then does this. */
static int inside(bool may_execute, int (*does)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct error err = { 0 };
        int r = sandbox_enter(may_execute, &err);
        _exit(r == -ENOTSUP ? UNKNOWN : r < 0 ? 100 : does());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == UNKNOWN)
        skip();
    return WEXITSTATUS(status);
}

static bool is_refused(long r)
{
    return r < 0 && errno == EPERM;
}

/* As root each of these would succeed, or fail otherwise. */
static int try_refused(void)
{
    const struct timespec now = { 0 };
    if (!is_refused(unshare(CLONE_FS | CLONE_NEWNS)) || !is_refused(unshare(CLONE_NEWUSER)))
        return 1;
    if (!is_refused(mount("none", "/nonexistent", "tmpfs", 0, NULL)))
        return 2;
    if (!is_refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)))
        return 3;
    if (!is_refused(syscall(SYS_bpf, 0, NULL, 0)) || !is_refused(syscall(SYS_io_uring_setup, 0, NULL)))
        return 4;
    if (!is_refused(syscall(SYS_clock_settime, 77, &now)) || !is_refused(syscall(SYS_setns, -1, 0)))
        return 5;
    if (!is_refused(syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0)))
        return 6;
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 7;
}

TEST(what_changes_the_machine_is_refused)
{
    assert_int_equal(inside(false, try_refused), 0);
    assert_int_equal(inside(true, try_refused), 0);
}

static void *look_around(void *arg)
{
    int *ret = arg;
    int pair[2] = { -1, -1 }, fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    *ret = fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 ? 0 : 1;
    (void)close(pair[0]);
    (void)close(pair[1]);
    (void)close(fd);
    return NULL;
}

static int try_usual(void)
{
    pthread_t thread;
    int result = 1, status = 0;
    if (pthread_create(&thread, NULL, look_around, &result) != 0 || pthread_join(thread, NULL) != 0 ||
        result != 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(is_refused(unshare(CLONE_NEWNS)) ? 42 : 2); // children inherit it
    return waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 42 ? 0 : 3;
}

TEST(files_sockets_threads_and_children_are_as_before)
{
    assert_int_equal(inside(false, try_usual), 0);
}

static int try_program(void)
{
    (void)execl("/bin/sh", "sh", "-c", "exit 21", NULL);
    return errno == EPERM ? 22 : 23;
}

TEST(programs_are_executed_only_where_that_is_allowed)
{
    assert_int_equal(inside(true, try_program), 21);
    assert_int_equal(inside(false, try_program), 22);
}

static volatile bool has_begun, may_look;
static int seen;

static void *look_later(void *arg)
{
    has_begun = true;
    while (!may_look)
        (void)sched_yield();
    seen = is_refused(unshare(CLONE_NEWNS)) ? 0 : 1;
    return NULL;
}

TEST(threads_that_were_there_before_are_in_it_too)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        struct error err = { 0 };
        (void)pthread_create(&thread, NULL, look_later, NULL);
        while (!has_begun)
            (void)sched_yield();
        int r = sandbox_enter(true, &err);
        may_look = true;
        (void)pthread_join(thread, NULL);
        _exit(r == -ENOTSUP ? UNKNOWN : seen);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WEXITSTATUS(status) == UNKNOWN)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}
