/* SPDX-License-Identifier: MIT */
/* Until the daemon is ready its standard error is the user's terminal, so the user sees why a start
 * failed. */
#include "base/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

int detach_start(const char *log_path, struct detached *ret, struct error *err)
{
    int ends[2];
    _cleanup_close_ int log_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (log_fd < 0)
        return error_set_errno(err, -errno, "cannot open the log %s", log_path);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set_errno(err, -errno, "cannot create a pipe");
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot detach from the terminal");
    if (pid == 0) {
        (void)close(ends[0]);
        (void)setsid();
        *ret = (struct detached){ .ready_fd = ends[1], .log_fd = take_fd(&log_fd) };
        return 0;
    }
    (void)close(ends[1]);
    char word;
    if (read(ends[0], &word, 1) == 1)
        _exit(0);
    int status = 0;
    (void)waitpid(pid, &status, 0);
    _exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1);
}

void detach_streams(int log_fd)
{
    _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(log_fd, STDERR_FILENO);
}

void detach_ready(struct detached *detached)
{
    if (detached->ready_fd < 0)
        return;
    detach_streams(detached->log_fd);
    (void)!write(detached->ready_fd, "", 1);
    closep(&detached->ready_fd);
}
