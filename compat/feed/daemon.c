/* SPDX-License-Identifier: MIT */
/*
 * mgpud reports that it is ready as to a service manager, through NOTIFY_SOCKET. It has its own process
 * group, so that Ctrl-C on the terminal does not reach it: this process reacts first and then ends it. If
 * this process is killed, mgpud ends too.
 */
#include "compat/feed/daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "cli/api/exit_code.h"
#include "cli/options/talk.h"
#include "compat/personalities/compat_common.h"

#define READY_WAIT_MS  60000
#define LEAVE_WAIT_MS  30000
#define DELAY_FIRST_MS 1000
#define DELAY_MAX_MS   30000
#define NAME_SIZE      32

void feed_daemon_init(struct feed_daemon *daemon)
{
    *daemon = (struct feed_daemon){ .pidfd = -1 };
}

/* A datagram socket under a name chosen by the kernel; `name` gets it in the form of NOTIFY_SOCKET. */
static int open_ready(char name[NAME_SIZE], int *ret_fd)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    socklen_t size = sizeof(address);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(sa_family_t)) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return -errno;
    size_t length = size - offsetof(struct sockaddr_un, sun_path);
    if (length >= NAME_SIZE)
        return -ENAMETOOLONG;
    memcpy(name, address.sun_path, length);
    name[0] = '@';
    name[length] = '\0';
    *ret_fd = take_fd(&fd);
    return 0;
}

static void be_daemon(const struct feed_daemon *daemon, const char *ready, pid_t parent)
{
    struct error err = { 0 };
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && setenv("NOTIFY_SOCKET", ready, 1) == 0)
        (void)compat_execute(&daemon->words, &err);
    talk_error("start", &err);
    _exit(EXIT_UNREACHABLE);
}

static int await_ready(struct feed_daemon *daemon, int ready, struct error *err)
{
    struct pollfd fds[] = { { .fd = ready, .events = POLLIN }, { .fd = daemon->pidfd, .events = POLLIN } };
    int n = 0;
    do
        n = poll(fds, 2, READY_WAIT_MS);
    while (n < 0 && errno == EINTR);
    if (n > 0 && fds[0].revents != 0)
        return 0;
    return error_set(err, n == 0 ? -ETIMEDOUT : -ECHILD,
        n == 0 ? "mgpud did not become ready" : "mgpud exited before it was ready");
}

static void forget(struct feed_daemon *daemon)
{
    if (daemon->pidfd >= 0)
        (void)close(daemon->pidfd);
    daemon->pidfd = -1;
    daemon->pid = 0;
}

/* Sends SIGTERM, after half a minute SIGKILL, and waits until it has ended. */
static void stop(struct feed_daemon *daemon)
{
    daemon->start_ms = 0;
    if (daemon->pid <= 0)
        return;
    /* It is a child that has not been reaped, so its pid has not been reused. */
    if (daemon->pidfd >= 0)
        (void)process_signal(daemon->pidfd, SIGTERM);
    else
        (void)kill(daemon->pid, SIGTERM);
    struct pollfd end = { .fd = daemon->pidfd, .events = POLLIN };
    if (daemon->pidfd >= 0 && poll(&end, 1, LEAVE_WAIT_MS) == 0)
        (void)process_signal(daemon->pidfd, SIGKILL);
    while (waitpid(daemon->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    forget(daemon);
}

int feed_daemon_start(struct feed_daemon *daemon, struct error *err)
{
    _cleanup_close_ int ready = -1;
    char name[NAME_SIZE];
    pid_t parent = getpid();
    int r = open_ready(name, &ready);
    if (r < 0)
        return error_set_errno(err, r, "cannot create a socket");
    (void)fflush(NULL);
    daemon->pid = fork();
    if (daemon->pid < 0)
        return error_set_errno(err, -errno, "cannot start mgpud");
    if (daemon->pid == 0)
        be_daemon(daemon, name, parent);
    daemon->start_ms = 0;
    daemon->pidfd = (int)syscall(SYS_pidfd_open, daemon->pid, 0);
    if (daemon->pidfd < 0)
        r = error_set_errno(err, -errno, "cannot watch mgpud");
    else
        r = await_ready(daemon, ready, err);
    if (r < 0)
        stop(daemon);
    return r;
}

void feed_daemon_note_end(struct feed_daemon *daemon)
{
    (void)waitpid(daemon->pid, NULL, 0);
    forget(daemon);
    daemon->delay_ms = daemon->delay_ms == 0 ? DELAY_FIRST_MS : daemon->delay_ms * 2;
    if (daemon->delay_ms > DELAY_MAX_MS)
        daemon->delay_ms = DELAY_MAX_MS;
    daemon->start_ms = clock_boot_ms() + daemon->delay_ms;
}

void feed_daemon_clear(struct feed_daemon *daemon)
{
    stop(daemon);
    strings_clear(&daemon->words);
}
