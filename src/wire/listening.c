/* SPDX-License-Identifier: MIT */
/*
 * If accept() fails for lack of descriptors, the connection stays in the backlog and the socket readable: the
 * loop would spin. Listening is therefore paused for a moment, and one warning is logged until the shortage
 * has ended.
 */
#include "wire/listening.h"

#include <errno.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

#define PAUSE_MS 100L

struct listening {
    struct evconnlistener *listener;
    struct event *resume;
    void (*on_accept)(void *arg, int fd);
    void *arg;
    bool is_short; // accept() failed, and has not worked since
    bool is_stopped, is_paused;
};

static void on_connection(
    struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer, int length, void *arg)
{
    struct listening *listening = arg;
    listening->is_short = false;
    listening->on_accept(listening->arg, fd);
}

static void on_error(struct evconnlistener *listener, void *arg)
{
    struct listening *listening = arg;
    int code = errno;
    if (!listening->is_short)
        log_warning("cannot accept a connection: %s; trying again every %ld ms", strerror(code), PAUSE_MS);
    listening->is_short = true;
    (void)evconnlistener_disable(listener);
    (void)evtimer_add(listening->resume, &(struct timeval){ .tv_usec = PAUSE_MS * 1000 });
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    const struct listening *listening = arg;
    if (!listening->is_paused)
        (void)evconnlistener_enable(listening->listener);
}

struct listening *listening_new(
    struct event_base *base, int fd, void (*on_accept)(void *arg, int fd), void *arg)
{
    struct listening *listening = xcalloc(1, sizeof(*listening));
    (void)evutil_make_socket_nonblocking(fd);
    listening->on_accept = on_accept;
    listening->arg = arg;
    listening->resume = evtimer_new(base, on_resume, listening);
    /* The 0 avoids a second listen(2): the one called as root shows clients that root owns this socket. */
    listening->listener = evconnlistener_new(
        base, on_connection, listening, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (listening->resume == NULL || listening->listener == NULL) {
        listening_free(listening);
        return NULL;
    }
    evconnlistener_set_error_cb(listening->listener, on_error);
    return listening;
}

void listening_pause(struct listening *listening)
{
    listening->is_paused = true;
    (void)evconnlistener_disable(listening->listener);
}

void listening_resume(struct listening *listening)
{
    listening->is_paused = false;
    if (!listening->is_stopped && evtimer_pending(listening->resume, NULL) == 0)
        (void)evconnlistener_enable(listening->listener);
}

void listening_stop(struct listening *listening)
{
    listening->is_stopped = true;
    (void)evtimer_del(listening->resume);
    (void)evconnlistener_disable(listening->listener);
}

void listening_free(struct listening *listening)
{
    int saved = errno;
    if (listening == NULL)
        return;
    if (listening->listener != NULL)
        evconnlistener_free(listening->listener);
    if (listening->resume != NULL)
        event_free(listening->resume);
    free(listening);
    errno = saved;
}
