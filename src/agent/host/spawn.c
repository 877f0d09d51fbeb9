/* SPDX-License-Identifier: MIT */
/*
 * The child shares the parent's memory until it executes, as with vfork(2): an agent with a large heap starts
 * shepherds as fast as a small one, and a failed exec is reported at once. vfork itself cannot enter a cgroup
 * and the C library has no clone3(2), so the system call is made here. It must be inlined: the child runs on
 * this function's frame, and a return address below it would be overwritten before the parent returns to it.
 */
#include "agent/host/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#define IS_SANITIZED __has_feature(address_sanitizer)
#else
#define IS_SANITIZED 0
#endif

struct child {
    const char *path;
    char *const *argv;
    char *const *environment;
    int null_fd;
    volatile int error; // positive errno of the exec, written to shared memory
};

/* Between clone and exec: system calls only. */
static __attribute__((noinline)) _Noreturn void run_child(struct child *child)
{
    (void)setsid();
    if (dup2(child->null_fd, STDIN_FILENO) < 0 || dup2(child->null_fd, STDOUT_FILENO) < 0 ||
        (fcntl(STDERR_FILENO, F_GETFD) < 0 && dup2(child->null_fd, STDERR_FILENO) < 0) ||
        close_range(STDERR_FILENO + 1, ~0U, 0) < 0) {
        child->error = errno;
        _exit(127);
    }
    (void)execve(child->path, child->argv, child->environment);
    child->error = errno;
    _exit(127);
}

/* Returns only in the parent. */
static __attribute__((noinline)) long clone_child(struct clone_args *args, struct child *child)
{
    long r;
#if defined(__x86_64__) && !IS_SANITIZED
    args->flags |= CLONE_VM | CLONE_VFORK;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args))
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__) && !IS_SANITIZED
    args->flags |= CLONE_VM | CLONE_VFORK;
    register long number __asm__("x8") = SYS_clone3;
    register long first __asm__("x0") = (long)args;
    register long second __asm__("x1") = (long)sizeof(*args);
    __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
    r = first;
#else
    /* A copy of the memory: slower, and a failed exec shows only as a child that ended with 127. */
    r = syscall(SYS_clone3, args, sizeof(*args));
    if (r < 0)
        r = -errno;
#endif
    if (r == 0)
        run_child(child);
    return r;
}

int spawn_program(const char *path, char *const *argv, char *const *environment, int cgroup_fd,
    pid_t *ret_pid, int *ret_pidfd)
{
    _cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    _cleanup_close_ int pidfd = -1;
    if (null_fd < 0)
        return -errno;
    struct child child = { .path = path, .argv = argv, .environment = environment, .null_fd = null_fd };
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD
    };
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    /* No signal handler may run in the child. */
    sigset_t all, old;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &old);
    long r = clone_child(&args, &child);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    if (r < 0)
        return (int)r;
    if (child.error != 0) {
        siginfo_t ended;
        (void)waitid(P_PIDFD, (id_t)pidfd, &ended, WEXITED);
        return -child.error;
    }
    *ret_pid = (pid_t)r;
    *ret_pidfd = take_fd(&pidfd);
    return 0;
}
