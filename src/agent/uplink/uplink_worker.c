/* SPDX-License-Identifier: MIT */
/*
 * The worker is the same program with --uplink-fd, so the key is not in its memory. It is passed the names
 * and directories determined here, but not the token.
 */
#include "agent/uplink/uplink_worker.h"

#include <errno.h>
#include <fcntl.h>
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
#include "base/strings.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS   5000
#define STEADY_MS        10000 // a worker that ran this long is not in a crash loop

struct uplink_worker {
    struct event_base *base;
    struct strings command;
    uplink_worker_started_fn *on_started;
    void *arg;
    int control_fd; // -1: there is none
    struct child *child;
    struct event *restart;
    int64_t started_ms, backoff_ms;
};

static int start(struct uplink_worker *worker, struct error *err)
{
    int pair[2], pidfd = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(err, -errno, "cannot create a socket for the worker");
    _cleanup_close_ int ours = pair[0], theirs = pair[1];
    pid_t pid = child_fork(theirs, &pidfd);
    if (pid == 0) {
        (void)fcntl(CHILD_FD, F_SETFD, 0);
        (void)setsid(); // Ctrl-C on a terminal must reach only the uplink, which then closes the socket
        (void)execv("/proc/self/exe", worker->command.items);
        _exit(127);
    }
    if (pid < 0)
        return error_set_errno(err, (int)pid, "cannot start the worker");
    worker->control_fd = take_fd(&ours);
    worker->started_ms = clock_boot_ms();
    return pidfd;
}

static void plan_start(struct uplink_worker *worker)
{
    if (clock_boot_ms() - worker->started_ms >= STEADY_MS || worker->backoff_ms == 0)
        worker->backoff_ms = BACKOFF_FIRST_MS;
    struct timeval wait = { worker->backoff_ms / 1000, worker->backoff_ms % 1000 * 1000 };
    (void)evtimer_add(worker->restart, &wait);
    worker->backoff_ms = worker->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : worker->backoff_ms * 2;
}

static void on_end(void *arg, int status)
{
    struct uplink_worker *worker = arg;
    worker->child = NULL;
    closep(&worker->control_fd);
    log_warning("the agent's worker ended with %s %d and is restarted",
        WIFEXITED(status) ? "status" : "signal", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    plan_start(worker);
}

static int start_and_watch(struct uplink_worker *worker, struct error *err)
{
    int pidfd = start(worker, err);
    if (pidfd < 0)
        return pidfd;
    worker->child = child_watch(worker->base, pidfd, on_end, worker);
    worker->on_started(worker->arg);
    return 0;
}

static void on_restart(evutil_socket_t fd, short what, void *arg)
{
    struct uplink_worker *worker = arg;
    struct error err = { 0 };
    if (start_and_watch(worker, &err) == 0)
        return;
    log_error("%s", err.message);
    plan_start(worker);
}

int uplink_worker_start(struct event_base *base, const struct agent_options *options, const char *node,
    uplink_worker_started_fn *on_started, void *arg, struct uplink_worker **ret, struct error *err)
{
    struct uplink_worker *worker = xcalloc(1, sizeof(*worker));
    *worker = (struct uplink_worker){ .base = base, .on_started = on_started, .arg = arg, .control_fd = -1 };
    *ret = worker;
    strings_add(&worker->command, "mgpu-agent");
    for (size_t i = 0; i < options->passed.count; i++)
        strings_add(&worker->command, options->passed.items[i]);
    strings_take(&worker->command, xasprintf("--run-dir=%s", options->run_dir));
    strings_take(&worker->command, xasprintf("--state-dir=%s", options->state_dir));
    if (options->is_state_dir_given && options->log_dir == NULL) // a private instance, as with mgpud
        strings_take(&worker->command, xasprintf("--log-dir=%s/logs", options->state_dir));
    strings_take(&worker->command, xasprintf("--node=%s", node));
    strings_take(&worker->command, xasprintf("--uplink-fd=%d", CHILD_FD));
    worker->restart = evtimer_new(base, on_restart, worker);
    return start_and_watch(worker, err);
}

void uplink_worker_free(struct uplink_worker *worker)
{
    if (worker == NULL)
        return;
    child_free(worker->child);
    closep(&worker->control_fd);
    event_free(worker->restart);
    strings_clear(&worker->command);
    free(worker);
}

int uplink_worker_link(struct uplink_worker *worker, int link_fd)
{
    if (worker->control_fd < 0)
        return -ENOTCONN;
    return descriptor_offer(worker->control_fd, "L", 1, link_fd);
}
