/* SPDX-License-Identifier: MIT */
/* If the shepherd has died by the end of the grace period, the init kills the remaining processes itself. */
#include "shepherd/rest.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "shepherd/init.h"
#include "shepherd/processes/tree.h"

#define BACKSTOP_MS 2000 // delay after the end of the grace period, at which the shepherd acts

/* Reaps children until none is left (true) or the time is up (false). All signals are blocked. */
static bool await_children(int64_t until_ms)
{
    sigset_t child;
    (void)sigemptyset(&child);
    (void)sigaddset(&child, SIGCHLD);
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid > 0 || (pid < 0 && errno == EINTR))
            continue;
        int64_t left_ms = until_ms - clock_boot_ms();
        if (pid < 0 || left_ms <= 0)
            return pid < 0;
        struct timespec wait = { .tv_sec = left_ms / 1000, .tv_nsec = left_ms % 1000 * 1000000 };
        (void)sigtimedwait(&child, NULL, &wait);
    }
}

/* The children of each killed process become children of the init. Processes of another user (sudo) are left
 * to the shepherd, which may be root. */
static void kill_children(void)
{
    struct tree tree = { .cgroup_fd = -1, .root = getpid() };
    while (tree_signal(&tree, SIGKILL) != -EPERM) {
        pid_t pid = waitpid(-1, NULL, 0);
        if (pid < 0 && errno != EINTR)
            return;
    }
}

bool rest_end(int status_fd)
{
    struct tree tree = { .cgroup_fd = -1, .root = getpid() };
    struct init_stop stop;
    struct roll left = { 0 };
    if (await_children(clock_boot_ms())) // no process, as usual
        return false;
    bool is_stop = init_read_stop(status_fd, &stop);
    if (await_children(is_stop ? stop.kill_boot_ms + BACKSTOP_MS : clock_boot_ms() + REST_MS))
        return is_stop;
    tree_list(&tree, &left);
    if (!is_stop && left.count > 0)
        init_write_left(status_fd, &left);
    kill_children();
    return is_stop;
}
