/* SPDX-License-Identifier: MIT */
/*
 * The lock of the run directory proves that an mgpud is running, and contains its pid. The pid is first
 * opened as a pidfd, and the lock is checked again afterwards, so that no other process can receive the
 * signal.
 */
#include "controller/running.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/system_mgpud.h"

#define STOP_MS 60000 // time to finish requests of clients and write the store

/* The pid in the lock; 0 if the lock is not held. */
static pid_t holder_of(int lock_fd)
{
    char text[16] = "";
    if (!is_file_locked(lock_fd) || pread(lock_fd, text, sizeof(text) - 1, 0) <= 0)
        return 0;
    return (pid_t)strtol(text, NULL, 10);
}

static int refuse_none(const char *run_dir, struct error *err)
{
    (void)error_set(err, -ESRCH, "no mgpud is running with %s", run_dir);
    if (geteuid() != 0 && strcmp(run_dir, SYSTEM_RUN_DIR) != 0 && system_mgpud_trace() != NULL)
        return error_hint(err, "that of all users of this machine, in %s, obeys root", SYSTEM_RUN_DIR);
    return error_hint(err, "if it was started with --run-dir, use the same --run-dir");
}

/* The pidfd of the mgpud that uses this run directory. */
static int open_running(const char *run_dir, pid_t *ret_pid, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/mgpud.lock", run_dir);
    _cleanup_close_ int lock_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (lock_fd < 0 && errno != ENOENT)
        return error_set_errno(err, -errno, "cannot open %s", path);
    pid_t pid = lock_fd < 0 ? 0 : holder_of(lock_fd);
    if (pid <= 0)
        return refuse_none(run_dir, err);
    _cleanup_close_ int pidfd = process_open(pid, process_start_time(pid));
    if (pidfd < 0 || holder_of(lock_fd) != pid)
        return refuse_none(run_dir, err);
    *ret_pid = pid;
    return take_fd(&pidfd);
}

int running_stop(const char *run_dir, struct error *err)
{
    pid_t pid = 0;
    _cleanup_close_ int pidfd = open_running(run_dir, &pid, err);
    int r = pidfd < 0 ? pidfd : process_signal(pidfd, SIGTERM);
    if (r < 0)
        return pidfd < 0 ? r : error_set_errno(err, r, "cannot stop mgpud (pid %d)", (int)pid);
    struct pollfd fd = { .fd = pidfd, .events = POLLIN };
    while ((r = poll(&fd, 1, STOP_MS)) < 0 && errno == EINTR)
        continue;
    if (r > 0)
        return 0;
    return error_set(err, -ETIMEDOUT, "mgpud (pid %d) did not exit within %d s", (int)pid, STOP_MS / 1000);
}

int running_reload(const char *run_dir, struct error *err)
{
    pid_t pid = 0;
    _cleanup_close_ int pidfd = open_running(run_dir, &pid, err);
    int r = pidfd < 0 ? pidfd : process_signal(pidfd, SIGHUP);
    return pidfd >= 0 && r < 0 ? error_set_errno(err, r, "cannot signal mgpud (pid %d)", (int)pid) : r;
}
