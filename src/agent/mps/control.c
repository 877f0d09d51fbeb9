/* SPDX-License-Identifier: MIT */
/*
 * The daemon runs in the foreground (-f), so its pid is known. Replies to commands have no fixed form, and
 * the program exits with 0 even after some refusals, so words of a refusal in its output are recognised too.
 */
#include "agent/mps/control.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/strings.h"

#define MIB            (UINT64_C(1) << 20)
#define OUTPUT_MAX     2048U
#define WORDS_MAX      160U // bytes of the output in an error
#define EXIT_NOT_BEGUN 125

/* The environment of daemon and commands. */
static void make_environment(const struct mps_place *place, struct strings *env)
{
    strings_add(env, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
    strings_take(env, xasprintf("CUDA_MPS_PIPE_DIRECTORY=%s", place->directory));
    strings_take(env, xasprintf("CUDA_MPS_LOG_DIRECTORY=%s", place->log));
    strings_take(env, xasprintf("CUDA_VISIBLE_DEVICES=%s", place->uuid));
}

static void enter_cgroup(int dir_fd)
{
    _cleanup_close_ int fd = openat(dir_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write_all(fd, "0", 1) < 0)
        _exit(EXIT_NOT_BEGUN); // in the agent's cgroup it could be killed together with the agent
}

pid_t mps_control_start(const struct mps_place *place, int cgroup_fd, int *ret_pidfd)
{
    char name[] = MPS_CONTROL, foreground[] = "-f";
    char *argv[] = { name, foreground, NULL };
    _cleanup_strings_ struct strings env = { 0 };
    make_environment(place, &env);
    pid_t pid = child_fork(cgroup_fd, ret_pidfd);
    if (pid != 0)
        return pid;
    (void)setsid();
    if (cgroup_fd >= 0)
        enter_cgroup(CHILD_FD);
    (void)dup2(STDOUT_FILENO, STDERR_FILENO); // it has its own log
    (void)execve(place->program, argv, env.items);
    _exit(EXIT_NOT_BEGUN);
}

/* The commands fit into the buffer of the socket, and a program with too much output is stopped in time. */
pid_t mps_control_send(const struct mps_place *place, const char *commands, int *ret_pidfd, int *ret_output)
{
    char name[] = MPS_CONTROL;
    char *argv[] = { name, NULL };
    int pair[2];
    _cleanup_strings_ struct strings env = { 0 };
    make_environment(place, &env);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    _cleanup_close_ int ours = pair[0];
    _cleanup_close_ int theirs = pair[1];
    int r = write_all(ours, commands, strlen(commands));
    if (r < 0 || shutdown(ours, SHUT_WR) < 0)
        return r < 0 ? r : -errno;
    pid_t pid = child_fork(theirs, ret_pidfd);
    if (pid == 0) {
        if (dup2(CHILD_FD, STDIN_FILENO) < 0 || dup2(CHILD_FD, STDOUT_FILENO) < 0 ||
            dup2(CHILD_FD, STDERR_FILENO) < 0)
            _exit(EXIT_NOT_BEGUN);
        (void)execve(place->program, argv, env.items);
        _exit(EXIT_NOT_BEGUN);
    }
    if (pid > 0)
        *ret_output = take_fd(&ours);
    return pid;
}

char *mps_control_commands(const struct mps_limits *limits, const pid_t *servers, size_t n_servers)
{
    struct buffer text = { 0 };
    uint64_t mib = limits->bytes / MIB;
    buffer_printf(&text, "set_default_device_pinned_mem_limit 0 %" PRIu64 "M\n", mib);
    buffer_printf(&text, "set_default_active_thread_percentage %u\n", limits->percent);
    for (size_t i = 0; i < n_servers; i++) {
        buffer_printf(&text, "set_device_pinned_mem_limit %d 0 %" PRIu64 "M\n", (int)servers[i], mib);
        buffer_printf(&text, "set_active_thread_percentage %d %u\n", (int)servers[i], limits->percent);
    }
    return buffer_take(&text);
}

static bool is_refusal(const char *output)
{
    static const char *const words[] = { "cannot", "could not", "error", "fail", "invalid", "not found",
        "not permitted", "not supported", "denied", "unknown", "unrecognized" };
    char lower[OUTPUT_MAX];
    size_t length = 0;
    for (; output[length] != '\0' && length < sizeof(lower) - 1; length++)
        lower[length] = (char)tolower((unsigned char)output[length]);
    lower[length] = '\0';
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(lower, words[i]) != NULL)
            return true;
    return false;
}

int mps_control_judge(int status, int output, struct error *err)
{
    char text[OUTPUT_MAX];
    ssize_t n = recv(output, text, sizeof(text) - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = '\0';
    for (ssize_t i = 0; i < n; i++)
        text[i] = text[i] == '\0' ? ' ' : text[i]; // a refusal may follow
    bool has_ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (has_ended_well && !is_refusal(text))
        return 0;
    text[strcspn(text, "\n")] = '\0';
    _cleanup_free_ char *words = text_escape(text, WORDS_MAX);
    if (words[0] != '\0')
        return error_set(err, -EIO, MPS_CONTROL " refused: %s", words);
    return error_set(err, -EIO, MPS_CONTROL " ended with status %d",
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

size_t mps_control_servers(const char *proc, pid_t daemon, pid_t servers[MPS_SERVERS_MAX])
{
    char text[512];
    _cleanup_free_ char *path = xasprintf("%s/%d/task/%d/children", proc, (int)daemon, (int)daemon);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    size_t count = 0;
    text[n > 0 ? n : 0] = '\0';
    for (char *at = text, *end; count < MPS_SERVERS_MAX; at = end) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            break;
        servers[count++] = (pid_t)pid;
    }
    return count;
}
