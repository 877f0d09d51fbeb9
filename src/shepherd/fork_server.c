/* SPDX-License-Identifier: MIT */
/*
 * The server only waits and clones: single thread, no allocation, no state between requests. Its children are
 * reaped by the kernel (SIGCHLD is ignored), since the agent watches them through the descriptors it
 * receives.
 *
 * A kept shepherd runs one step after the other. Between two of them it has no child, no directory, and no
 * descriptor except the one to the agent. It exits when it has been idle for IDLE_MS, has run STEPS_MAX
 * steps, or its agent has ended.
 */
#include "shepherd/fork_server.h"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/fork_request.h"
#include "base/memory.h"
#include "shepherd/shepherd.h"

#define IDLE_MS   10000
#define STEPS_MAX 100U

/* Room for what `ps` shows: main's arguments. */
struct title {
    char *begin, *end;
};

static void show(const struct title *title, const char *name, const char *const words[3])
{
    char *at = title->begin;
    memset(at, 0, (size_t)(title->end - at));
    for (size_t i = 0; i < 3; i++) {
        size_t length = words[i] != NULL ? strlen(words[i]) + 1 : 0;
        if (length == 0 || length > (size_t)(title->end - at))
            continue;
        memcpy(at, words[i], length);
        at += length;
    }
    (void)prctl(PR_SET_NAME, name);
}

static bool is_request(const struct fork_request *request)
{
    return request->magic == FORK_MAGIC && memchr(request->spool_dir, '\0', FORK_DIR_SIZE) != NULL;
}

/* 0 in the new shepherd, its pid in the server, or a negative errno. */
static long clone_shepherd(int cgroup_fd, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)ret_pidfd, .exit_signal = SIGCHLD
    };
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    return pid < 0 ? -errno : pid;
}

/* False in the new shepherd, with its end of the pair if it is kept. */
static bool answer(int fd, const struct fork_request *request, int cgroup_fd, int *ret_agent_fd)
{
    int pair[2] = { -1, -1 };
    long pid = is_request(request) ? 0 : -EBADMSG;
    if (pid == 0 && request->is_kept != 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        pid = -errno;
    _cleanup_close_ int ours = pair[0], theirs = pair[1], pidfd = -1;
    if (pid == 0)
        pid = clone_shepherd(cgroup_fd, &pidfd);
    if (pid == 0) {
        pidfd = -1; // the server's
        *ret_agent_fd = take_fd(&theirs);
        return false;
    }
    struct fork_reply reply = {
        .magic = FORK_MAGIC, .error = pid < 0 ? (int32_t)-pid : 0, .pid = pid > 0 ? (int32_t)pid : 0
    };
    int r = descriptor_send(fd, &reply, sizeof(reply), pidfd);
    if (r == 0 && pid > 0 && ours >= 0)
        r = descriptor_send(fd, &reply, sizeof(reply), ours);
    if (r < 0)
        _exit(SHEPHERD_DONE);
    return true;
}

/* --- in a shepherd --- */

/* Everything of the step has been freed and closed already; this verifies it. False if a child is left. */
static bool clear_rest(int agent_fd)
{
    pid_t pid;
    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    if (pid == 0 || chdir("/") < 0)
        return false;
    if (agent_fd > STDERR_FILENO + 1)
        (void)close_range(STDERR_FILENO + 1, (unsigned)agent_fd - 1, 0);
    return close_range((unsigned)agent_fd + 1, ~0U, 0) == 0;
}

/* Receives the next step. False if none arrives for a while, or the agent has ended. */
static bool await_request(int agent_fd, struct fork_request *ret)
{
    static const char idle = SHEPHERD_IDLE;
    struct pollfd source = { agent_fd, POLLIN, 0 };
    _cleanup_close_ int cgroup_fd = -1;
    return send(agent_fd, &idle, sizeof(idle), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(idle) &&
           poll(&source, 1, IDLE_MS) == 1 &&
           descriptor_receive(agent_fd, ret, sizeof(*ret), &cgroup_fd) == 1 && is_request(ret);
}

/* Runs one step after the other if this shepherd is kept. */
static int serve(struct fork_request *request, int agent_fd, const struct title *title)
{
    for (unsigned served = 1;; served++) {
        const char *const step[] = { "mgpu-shepherd", request->is_adopter != 0 ? "--adopt" : NULL,
            request->spool_dir };
        static const char *const idle[] = { "mgpu-shepherd", "--idle", NULL };
        bool is_plain;
        show(title, "mgpu-shepherd", step);
        if (request->is_adopter != 0)
            return shepherd_adopt(request->spool_dir);
        int status = shepherd_launch_kept(request->spool_dir, agent_fd, &is_plain);
        if (agent_fd < 0 || !is_plain || served == STEPS_MAX || !clear_rest(agent_fd))
            return status;
        show(title, "mgpu-idle", idle);
        if (!await_request(agent_fd, request))
            return status;
    }
}

int fork_server_run(int fd, int argc, char **argv)
{
    const struct title title = { argv[0], argv[argc - 1] + strlen(argv[argc - 1]) };
    struct fork_request request;
    int agent_fd = -1;
    (void)signal(SIGCHLD, SIG_IGN);
    (void)prctl(PR_SET_NAME, "mgpu-forks");
    for (;;) {
        int cgroup_fd = -1;
        if (descriptor_receive(fd, &request, sizeof(request), &cgroup_fd) <= 0)
            _exit(SHEPHERD_DONE);
        bool is_server = answer(fd, &request, cgroup_fd, &agent_fd);
        closep(&cgroup_fd);
        if (!is_server)
            break;
    }
    (void)close(fd);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)setsid();
    return serve(&request, agent_fd, &title);
}
