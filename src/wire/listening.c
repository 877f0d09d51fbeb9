/* SPDX-License-Identifier: MIT */
/*
 * If accept() fails for lack of descriptors, the connection stays in the backlog and the socket readable: the
 * loop would spin. Listening is therefore paused for a moment, and one warning is logged until the shortage
 * has ended.
 *
 * A callback accepts a few connections and leaves the others to the next one: clients can connect faster than
 * they are accepted, and nothing else would happen.
 */
#include "wire/listening.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

#define PAUSE_MS    100L
#define ACCEPTS_MAX 16

struct listening {
    int fd;
    struct event *readable, *resume;
    void (*on_accept)(void *arg, int fd);
    void *arg;
    bool is_short; // accept() has failed, and has not succeeded since
    bool is_stopped, is_paused;
};

static void wait_for_descriptors(struct listening *listening, int code)
{
    if (!listening->is_short)
        log_warning("cannot accept a connection: %s; trying again every %ld ms", strerror(code), PAUSE_MS);
    listening->is_short = true;
    (void)event_del(listening->readable);
    (void)evtimer_add(listening->resume, &(struct timeval){ .tv_usec = PAUSE_MS * 1000 });
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct listening *listening = arg;
    for (int i = 0; i < ACCEPTS_MAX && !listening->is_paused && !listening->is_stopped; i++) {
        int accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (accepted < 0) {
            if (errno != EAGAIN)
                wait_for_descriptors(listening, errno);
            return;
        }
        listening->is_short = false;
        listening->on_accept(listening->arg, accepted);
    }
}

static void listen_again(struct listening *listening)
{
    if (!listening->is_paused && !listening->is_stopped)
        (void)event_add(listening->readable, NULL);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    listen_again(arg);
}

struct listening *listening_new(
    struct event_base *base, int fd, void (*on_accept)(void *arg, int fd), void *arg)
{
    struct listening *listening = xcalloc(1, sizeof(*listening));
    (void)evutil_make_socket_nonblocking(fd);
    listening->fd = fd;
    listening->on_accept = on_accept;
    listening->arg = arg;
    listening->resume = evtimer_new(base, on_resume, listening);
    listening->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, listening);
    if (listening->resume == NULL || listening->readable == NULL ||
        event_add(listening->readable, NULL) < 0) {
        listening_free(listening);
        return NULL;
    }
    return listening;
}

void listening_set_priority(struct listening *listening, int priority)
{
    (void)event_priority_set(listening->readable, priority);
}

void listening_pause(struct listening *listening)
{
    listening->is_paused = true;
    (void)event_del(listening->readable);
}

void listening_resume(struct listening *listening)
{
    listening->is_paused = false;
    if (evtimer_pending(listening->resume, NULL) == 0)
        listen_again(listening);
}

void listening_stop(struct listening *listening)
{
    listening->is_stopped = true;
    (void)evtimer_del(listening->resume);
    (void)event_del(listening->readable);
}

void listening_free(struct listening *listening)
{
    int saved = errno;
    if (listening == NULL)
        return;
    if (listening->readable != NULL)
        event_free(listening->readable);
    if (listening->resume != NULL)
        event_free(listening->resume);
    (void)close(listening->fd);
    free(listening);
    errno = saved;
}
