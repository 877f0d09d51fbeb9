/* SPDX-License-Identifier: MIT */
/*
 * mgpud drops root right after starting this process, which is needed to replace an agent that has died. It
 * does nothing else: no event loop, no allocation, and it waits for three things (control socket, worker,
 * time). After its end, workers live only until they notice that their link has closed. If mgpud does not
 * read its control socket, it gets no further links.
 */
#include "agent/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/memory.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS   5000
#define STEADY_MS        10000 // a worker that ran this long is not in a crash loop
#define ARGUMENTS_MAX    64

struct keeper {
    int control_fd;
    char *argv[ARGUMENTS_MAX + 2]; // of a worker
    int worker;                    // pidfd, -1: none
    int64_t started_ms, start_at_ms, backoff_ms;
};

static int start_worker(struct keeper *keeper)
{
    int link[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
        return -errno;
    _cleanup_close_ int ours = link[0];
    _cleanup_close_ int theirs = link[1];
    int r = descriptor_offer(keeper->control_fd, "L", 1, theirs); // mgpud uses only the descriptor
    if (r < 0)
        return r;
    pid_t pid = child_fork(ours, &keeper->worker);
    if (pid == 0) {
        (void)fcntl(CHILD_FD, F_SETFD, 0);
        (void)execv("/proc/self/exe", keeper->argv);
        _exit(127);
    }
    keeper->started_ms = clock_boot_ms();
    return pid < 0 ? (int)pid : 0;
}

/* Plans the next start, sooner if the worker had been steady. */
static void plan_start(struct keeper *keeper)
{
    int64_t now_ms = clock_boot_ms();
    if (now_ms - keeper->started_ms >= STEADY_MS || keeper->backoff_ms == 0)
        keeper->backoff_ms = BACKOFF_FIRST_MS;
    keeper->start_at_ms = now_ms + keeper->backoff_ms;
    keeper->backoff_ms = keeper->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : keeper->backoff_ms * 2;
}

static void reap_worker(struct keeper *keeper)
{
    siginfo_t end = { 0 };
    (void)waitid(P_PIDFD, (id_t)keeper->worker, &end, WEXITED);
    log_warning("the agent ended with %s %d and is restarted",
        end.si_code == CLD_EXITED ? "status" : "signal", end.si_status);
    closep(&keeper->worker);
    plan_start(keeper);
}

/* False if the controller has ended. */
static bool step(struct keeper *keeper)
{
    struct pollfd fds[] = { { .fd = keeper->control_fd, .events = POLLIN },
        { .fd = keeper->worker, .events = POLLIN } };
    int64_t left_ms = keeper->start_at_ms - clock_boot_ms();
    if (poll(fds, 2, keeper->worker >= 0 ? -1 : left_ms > 0 ? (int)left_ms : 0) < 0)
        return errno == EINTR;
    if (fds[0].revents != 0)
        return false; // nothing is ever sent here, so this is the end of file
    if (keeper->worker >= 0 && fds[1].revents != 0)
        reap_worker(keeper);
    if (keeper->worker >= 0 || clock_boot_ms() < keeper->start_at_ms)
        return true;
    int r = start_worker(keeper);
    if (r == -EAGAIN) // mgpud has not taken the previous link yet
        plan_start(keeper);
    else if (r < 0) {
        log_error("cannot start the agent: %s", strerror(-r));
        plan_start(keeper);
    }
    return r != -EPIPE;
}

int keeper_run(int control_fd, int argc, char **argv)
{
    struct keeper keeper = { .control_fd = control_fd, .worker = -1 };
    static char link_option[] = "--link-fd=3"; // CHILD_FD
    if (argc > ARGUMENTS_MAX) {
        log_error("the agent accepts at most %d arguments", ARGUMENTS_MAX);
        return EXIT_FAILURE;
    }
    memcpy(keeper.argv, argv, (size_t)argc * sizeof(char *));
    keeper.argv[argc] = link_option;
    (void)fcntl(control_fd, F_SETFD, FD_CLOEXEC);
    (void)setsid(); // Ctrl-C on a terminal must reach only mgpud, which then closes our sockets
    while (step(&keeper))
        ;
    closep(&keeper.worker);
    return EXIT_SUCCESS;
}
