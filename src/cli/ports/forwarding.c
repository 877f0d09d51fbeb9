/* SPDX-License-Identifier: MIT */
#include "cli/ports/forwarding.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/api/leaving_signals.h"
#include "cli/follow/idle_news.h"
#include "cli/options/talk.h"
#include "cli/ports/carry.h"
#include "cli/ports/local.h"

#define CONNECTIONS_MAX 256U // at a time; more wait in the backlog
#define NEWS_RETRY_MS   2000

struct loop {
    struct call *call;
    struct forwarding *forwarding;
    struct idle_news news;
    int64_t news_retry_ms; // boot clock; 0: the news stream is being read
    int signal_fd;
    size_t connections;
};

/* From here on, signals that stop it wait: the caller may announce the listeners before forwarding_run(). */
static void block_stops(sigset_t *set)
{
    leaving_signals(set);
    (void)sigprocmask(SIG_BLOCK, set, NULL);
}

int forwarding_open(struct forwarding *forwarding, struct target *targets, size_t count, struct error *err)
{
    sigset_t stops;
    block_stops(&stops);
    forwarding->targets = targets;
    forwarding->listeners = xcalloc(count * LOCAL_SOCKETS_MAX, sizeof(*forwarding->listeners));
    for (size_t i = 0; i < count; i++) {
        int fds[LOCAL_SOCKETS_MAX];
        int n = local_listen(&targets[i].local, fds, err);
        if (n < 0)
            return n;
        for (int k = 0; k < n; k++)
            forwarding->listeners[forwarding->n_listeners++] =
                (struct forwarding_listener){ .fd = fds[k], .target = i };
        forwarding->count++;
    }
    return 0;
}

void forwarding_close(struct forwarding *forwarding)
{
    for (size_t i = 0; i < forwarding->n_listeners; i++)
        (void)close(forwarding->listeners[i].fd);
    for (size_t i = 0; i < forwarding->count; i++)
        if (forwarding->targets[i].local.path != NULL)
            (void)unlink(forwarding->targets[i].local.path);
    free(forwarding->listeners);
    *forwarding = (struct forwarding){ 0 };
}

static int open_signals(struct error *err)
{
    sigset_t set;
    block_stops(&set);
    (void)sigaddset(&set, SIGCHLD);
    return leaving_signals_open(&set, err);
}

static void on_signal(struct loop *loop)
{
    struct signalfd_siginfo info;
    while (read(loop->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo != SIGCHLD)
            loop->forwarding->stop_signal = (int)info.ssi_signo;
    while (loop->connections > 0 && waitpid(-1, NULL, WNOHANG) > 0)
        loop->connections--;
}

static void on_connection(struct loop *loop, size_t i)
{
    const struct forwarding *forwarding = loop->forwarding;
    const struct forwarding_listener *listener = &forwarding->listeners[i];
    const struct target *target = &forwarding->targets[listener->target];
    struct error err = { 0 };
    const struct carry_to to = {
        .job = forwarding->job, .rank = forwarding->rank, .remote = &target->remote
    };
    int fd = local_accept(listener->fd, &target->local, &err);
    if (fd >= 0 && carry_start(loop->call, &to, fd, false) > 0)
        loop->connections++;
    else if (err.code != 0)
        talk_line("%s", err.message);
}

/* True when the job has ended. */
static bool read_news(struct loop *loop, bool is_readable)
{
    if (loop->news_retry_ms != 0 && clock_boot_ms() >= loop->news_retry_ms) {
        idle_news_clear(&loop->news);
        idle_news_start(&loop->news, &loop->call->client, loop->forwarding->job, loop->call->times);
        loop->news_retry_ms = 0;
    }
    _cleanup_free_ char *sentence = idle_news_advance(&loop->news, is_readable);
    if (sentence != NULL && !loop->call->is_quiet)
        talk_line("%s", sentence);
    /* mgpud was unreachable for longer than a request waits. */
    if (loop->news.stream.state == STREAM_IDLE && loop->news_retry_ms == 0)
        loop->news_retry_ms = clock_boot_ms() + NEWS_RETRY_MS;
    return loop->news.stream.state == STREAM_COMPLETE;
}

static int wait_ms(const struct loop *loop)
{
    if (loop->news_retry_ms == 0)
        return stream_wait_ms(&loop->news.stream);
    int64_t left = loop->news_retry_ms - clock_boot_ms();
    return left > 0 ? (int)left : 0;
}

static int run(struct loop *loop, struct pollfd *fds, struct error *err)
{
    const struct forwarding *forwarding = loop->forwarding;
    size_t n = forwarding->n_listeners;
    while (forwarding->stop_signal == 0) {
        for (size_t i = 0; i < n; i++)
            fds[i] =
                (struct pollfd){ .fd = loop->connections < CONNECTIONS_MAX ? forwarding->listeners[i].fd : -1,
                    .events = POLLIN };
        fds[n] = (struct pollfd){ .fd = loop->signal_fd, .events = POLLIN };
        fds[n + 1] = (struct pollfd){ .fd = stream_fd(&loop->news.stream), .events = POLLIN };
        if (poll(fds, n + 2, wait_ms(loop)) < 0 && errno != EINTR)
            return error_set_errno(err, -errno, "cannot wait");
        if (fds[n].revents != 0)
            on_signal(loop);
        for (size_t i = 0; i < n; i++)
            if (fds[i].revents != 0)
                on_connection(loop, i);
        if (read_news(loop, fds[n + 1].revents != 0))
            return FORWARDING_JOB_ENDED;
    }
    return FORWARDING_STOPPED;
}

int forwarding_run(struct call *call, struct forwarding *forwarding, struct error *err)
{
    struct loop loop = { .call = call, .forwarding = forwarding };
    _cleanup_free_ struct pollfd *fds = xcalloc(forwarding->n_listeners + 2, sizeof(*fds));
    loop.signal_fd = open_signals(err);
    if (loop.signal_fd < 0)
        return loop.signal_fd;
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    idle_news_start(&loop.news, &call->client, forwarding->job, call->times);
    int r = run(&loop, fds, err);
    idle_news_clear(&loop.news);
    (void)close(loop.signal_fd);
    return r;
}
