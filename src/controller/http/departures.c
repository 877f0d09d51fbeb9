/* SPDX-License-Identifier: MIT */
/*
 * Unread bytes hide the end of the stream behind them. The kernel reports that end separately (EPOLLRDHUP),
 * but level-triggered, and libevent has no event for an error on a socket that is neither read nor written:
 * it would spin. These sockets are therefore in a separate edge-triggered epoll set, which is one event of
 * the loop.
 */
#include "controller/http/departures.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/memory.h"

struct departures {
    int epoll_fd;
    struct event *readable;
    departures_fn on_departure;
};

/* One event at a time: the callback may close connections with pending events. */
static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct departures *departures = arg;
    struct epoll_event event;
    if (epoll_wait(departures->epoll_fd, &event, 1, 0) == 1)
        departures->on_departure(event.data.ptr, (event.events & (EPOLLERR | EPOLLHUP)) != 0);
}

struct departures *departures_new(struct event_base *loop, departures_fn on_departure)
{
    struct departures *departures = xcalloc(1, sizeof(*departures));
    departures->on_departure = on_departure;
    departures->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    departures->readable =
        event_new(loop, departures->epoll_fd, EV_READ | EV_PERSIST, on_readable, departures);
    if (departures->epoll_fd < 0 || departures->readable == NULL)
        abort(); // during the start, when neither memory nor descriptors are short
    (void)event_add(departures->readable, NULL);
    return departures;
}

void departures_free(struct departures *departures)
{
    if (departures == NULL)
        return;
    event_free(departures->readable);
    (void)close(departures->epoll_fd);
    free(departures);
}

void departures_watch(struct departures *departures, int fd, void *arg)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = arg };
    (void)epoll_ctl(departures->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void departures_forget(struct departures *departures, int fd)
{
    (void)epoll_ctl(departures->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}
