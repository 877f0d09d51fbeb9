/* SPDX-License-Identifier: MIT */
#include "agent/confine/program_check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

#define ANSWER_MS 5000

static int start(const char *path, pid_t *ret_pid)
{
    char option[] = "--version";
    _cleanup_free_ char *name = xstrdup(path);
    char *const argv[] = { name, option, NULL }, *const environment[] = { NULL };
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int error = posix_spawn(ret_pid, path, &actions, NULL, argv, environment);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -error;
}

int program_check(const char *path, struct error *err)
{
    pid_t pid = 0;
    int status = 0, r = start(path, &pid);
    if (r < 0)
        return error_set_errno(err, r, "%s cannot be executed", path);
    _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = { fd, POLLIN, 0 };
    bool is_late = fd >= 0 && poll(&end, 1, ANSWER_MS) == 0;
    if (is_late)
        (void)kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) < 0)
        return 0; // another process has its status
    if (is_late)
        return error_set(err, -ETIMEDOUT, "%s --version does not end within %d s", path, ANSWER_MS / 1000);
    if (WIFSIGNALED(status))
        return error_set(err, -ECHILD, "%s --version is killed by signal %d (%s)", path, WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return error_set(err, -ECHILD, "%s --version exits with %d", path, WEXITSTATUS(status));
    return 0;
}
