/* SPDX-License-Identifier: MIT */
/*
 * The server only waits and clones: single thread, no allocation, no state between requests. Its children are
 * reaped by the kernel (SIGCHLD is ignored), since the agent watches them through the pidfds it receives.
 */
#include "shepherd/fork_server.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/fork_request.h"
#include "base/memory.h"
#include "shepherd/shepherd.h"

/* Writes what `ps` shows over main's arguments, as far as they reach. */
static void show_step(int argc, char **argv, const struct fork_request *request)
{
    const char *const words[] = { "mgpu-shepherd", request->is_adopter != 0 ? "--adopt" : NULL,
        request->spool_dir };
    char *end = argv[argc - 1] + strlen(argv[argc - 1]);
    char *at = argv[0];
    memset(at, 0, (size_t)(end - at));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = words[i] != NULL ? strlen(words[i]) + 1 : 0;
        if (length == 0 || length > (size_t)(end - at))
            continue;
        memcpy(at, words[i], length);
        at += length;
    }
    (void)prctl(PR_SET_NAME, "mgpu-shepherd");
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

/* False in the new shepherd. */
static bool answer(int fd, const struct fork_request *request, int cgroup_fd)
{
    bool is_good = request->magic == FORK_MAGIC && memchr(request->spool_dir, '\0', FORK_DIR_SIZE) != NULL;
    _cleanup_close_ int pidfd = -1;
    long pid = is_good ? clone_shepherd(cgroup_fd, &pidfd) : -EBADMSG;
    if (pid == 0) {
        pidfd = -1; // the server's
        return false;
    }
    struct fork_reply reply = {
        .magic = FORK_MAGIC, .error = pid < 0 ? (int32_t)-pid : 0, .pid = pid > 0 ? (int32_t)pid : 0
    };
    if (descriptor_send(fd, &reply, sizeof(reply), pidfd) < 0)
        _exit(SHEPHERD_DONE);
    return true;
}

int fork_server_run(int fd, int argc, char **argv)
{
    struct fork_request request;
    (void)signal(SIGCHLD, SIG_IGN);
    (void)prctl(PR_SET_NAME, "mgpu-forks");
    for (;;) {
        int cgroup_fd = -1;
        if (descriptor_receive(fd, &request, sizeof(request), &cgroup_fd) <= 0)
            _exit(SHEPHERD_DONE);
        bool is_server = answer(fd, &request, cgroup_fd);
        closep(&cgroup_fd);
        if (!is_server)
            break;
    }
    (void)close(fd);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)setsid();
    show_step(argc, argv, &request);
    return request.is_adopter != 0 ? shepherd_adopt(request.spool_dir) : shepherd_launch(request.spool_dir);
}
