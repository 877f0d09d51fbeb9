/* SPDX-License-Identifier: MIT */
#include "agent/host/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

struct child {
    int pidfd;
    struct event *event;
    child_ended_fn *on_end;
    void *arg;
};

/* The raw wait status of a process that has ended, 0 if it was not a child. */
static int reap(int pidfd)
{
    siginfo_t end = { 0 };
    if (waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED) < 0)
        return 0;
    if (end.si_code == CLD_EXITED)
        return end.si_status << 8;
    return end.si_status | (end.si_code == CLD_DUMPED ? 0x80 : 0);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct child *child = arg;
    child_ended_fn *on_end = child->on_end;
    void *on_end_arg = child->arg;
    int status = reap(child->pidfd);
    child_free(child);
    on_end(on_end_arg, status);
}

struct child *child_watch(struct event_base *base, int pidfd, child_ended_fn *on_end, void *arg)
{
    struct child *child = xcalloc(1, sizeof(*child));
    child->pidfd = pidfd;
    child->on_end = on_end;
    child->arg = arg;
    child->event = event_new(base, pidfd, EV_READ, on_readable, child);
    if (child->event == NULL || event_add(child->event, NULL) < 0)
        abort(); // memory
    return child;
}

static void tidy_up(int keep_fd)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;
    (void)sigemptyset(&none);
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        (void)sigaction(signal_number, &action, NULL);
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (keep_fd >= 0 && keep_fd != CHILD_FD && dup3(keep_fd, CHILD_FD, O_CLOEXEC) < 0)
        _exit(125);
    (void)close_range(keep_fd < 0 ? CHILD_FD : CHILD_FD + 1, ~0U, 0);
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    (void)open("/dev/null", O_RDWR);
    (void)dup2(STDIN_FILENO, STDOUT_FILENO);
}

pid_t child_fork(int keep_fd, int *ret_pidfd)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        tidy_up(keep_fd);
        return 0;
    }
    /* Only this process could reap it, so the pid still refers to this process. */
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        int r = -errno;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return r;
    }
    *ret_pidfd = pidfd;
    return pid;
}

int child_pidfd(const struct child *child)
{
    return child->pidfd;
}

void child_free(struct child *child)
{
    if (child == NULL)
        return;
    event_free(child->event);
    closep(&child->pidfd);
    free(child);
}
