/* SPDX-License-Identifier: MIT */
#include "lab/kit/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"

#define OUTPUT_MAX    ((size_t)1 << 20)
#define EXEC_FAILED   127
#define SIGNAL_STATUS 128
#define STOP_MS       5000

/* In the child. `failed` tells the parent why there is no program; -1: it does not ask. */
static _Noreturn void execute(const char *const *argv, int out, int err, int failed)
{
    union {
        const char *const *given;
        char *const *kept;
    } arguments = { .given = argv };
    sigset_t none;
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)dup2(input >= 0 ? input : STDIN_FILENO, STDIN_FILENO);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)execvp(argv[0], arguments.kept);
    int error = errno;
    ssize_t n = failed >= 0 ? write(failed, &error, sizeof(error)) : 0;
    (void)n;
    _exit(EXEC_FAILED);
}

static int status_of(int status)
{
    return WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reads both until they end or the time is up. True if the time is up. */
static bool read_all(int out, int err, int64_t end_ms, struct buffer texts[2])
{
    struct pollfd ready[2] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
    char bytes[16384];
    while (ready[0].fd >= 0 || ready[1].fd >= 0) {
        int64_t left_ms = end_ms - clock_boot_ms();
        if (left_ms <= 0)
            return true;
        if (poll(ready, 2, (int)left_ms) < 0 && errno != EINTR)
            return false;
        for (size_t i = 0; i < 2; i++) {
            if (ready[i].fd < 0 || ready[i].revents == 0)
                continue;
            ssize_t n = read(ready[i].fd, bytes, sizeof(bytes));
            if (n <= 0)
                ready[i].fd = -1;
            else if (texts[i].length + (size_t)n <= OUTPUT_MAX)
                buffer_append(&texts[i], bytes, (size_t)n);
        }
    }
    return false;
}

static void become(int64_t uid)
{
    if (uid >= 0 && (setgroups(0, NULL) < 0 || setgid((gid_t)uid) < 0 || setuid((uid_t)uid) < 0))
        _exit(EXEC_FAILED);
}

int child_run(const char *const *argv, int64_t timeout_ms, struct child_output *ret)
{
    return child_run_as(-1, argv, timeout_ms, ret);
}

int child_run_as(int64_t uid, const char *const *argv, int64_t timeout_ms, struct child_output *ret)
{
    int out[2] = { -1, -1 }, err[2] = { -1, -1 }, failed[2] = { -1, -1 }, error = 0;
    struct buffer texts[2] = { 0 };
    int64_t begin_us = clock_boot_us(), end_ms = clock_boot_ms() + timeout_ms;
    *ret = (struct child_output){ 0 };
    if (pipe2(out, O_CLOEXEC) < 0)
        return -errno;
    _cleanup_close_ int out_read = out[0], out_write = out[1];
    if (pipe2(err, O_CLOEXEC) < 0)
        return -errno;
    _cleanup_close_ int err_read = err[0], err_write = err[1];
    if (pipe2(failed, O_CLOEXEC) < 0)
        return -errno;
    _cleanup_close_ int failed_read = failed[0], failed_write = failed[1];
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        become(uid);
        execute(argv, out_write, err_write, failed_write);
    }
    (void)close(take_fd(&failed_write));
    ssize_t n = read(failed_read, &error, sizeof(error)); // until it has executed its program
    (void)close(take_fd(&out_write));
    (void)close(take_fd(&err_write));
    ret->is_late = read_all(out_read, err_read, end_ms, texts);
    int64_t left_ms = end_ms - clock_boot_ms();
    ret->status = ret->is_late ? -1 : child_wait(pid, left_ms > 0 ? left_ms : 1);
    if (ret->status < 0) {
        ret->is_late = true;
        ret->status = child_stop(pid, SIGKILL, STOP_MS);
    }
    ret->us = clock_boot_us() - begin_us;
    ret->out = buffer_take(&texts[0]);
    ret->err = buffer_take(&texts[1]);
    return n == (ssize_t)sizeof(error) ? -error : 0;
}

void child_output_clear(struct child_output *output)
{
    free(output->out);
    free(output->err);
    *output = (struct child_output){ 0 };
}

pid_t child_start(const char *const *argv, const char *log, int64_t uid)
{
    _cleanup_close_ int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0)
        return pid;
    become(uid);
    execute(argv, fd, fd, -1);
}

int child_wait(pid_t pid, int64_t timeout_ms)
{
    int status = 0;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ready = { .fd = pidfd, .events = POLLIN };
    int64_t end_ms = clock_boot_ms() + timeout_ms;
    int n = 0;
    for (int64_t left = timeout_ms; pidfd >= 0 && n == 0 && left > 0; left = end_ms - clock_boot_ms())
        n = poll(&ready, 1, (int)left);
    if (pidfd >= 0)
        (void)close(pidfd);
    return waitpid(pid, &status, n > 0 || pidfd < 0 ? 0 : WNOHANG) == pid ? status_of(status) : -1;
}

int child_stop(pid_t pid, int signal, int64_t timeout_ms)
{
    (void)kill(pid, signal);
    int status = child_wait(pid, timeout_ms);
    if (status >= 0 || signal == SIGKILL)
        return status;
    (void)kill(pid, SIGKILL);
    return child_wait(pid, STOP_MS);
}

json_t *json_last_line(const char *text)
{
    json_t *last = NULL;
    _cleanup_free_ char *copy = xstrdup(text != NULL ? text : "");
    char *rest = copy;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        json_t *found = line[0] == '{' ? json_loads(line, 0, NULL) : NULL;
        if (found == NULL)
            continue;
        json_decref(last);
        last = found;
    }
    return last;
}

void text_last_line(const char *text, char *line, size_t size)
{
    _cleanup_free_ char *copy = xstrdup(text != NULL ? text : "");
    char *rest = copy;
    line[0] = '\0';
    for (char *each = strsep(&rest, "\n"); each != NULL; each = strsep(&rest, "\n"))
        if (each[0] != '\0')
            (void)snprintf(line, size, "%s", each);
}
