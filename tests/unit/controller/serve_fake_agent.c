/* SPDX-License-Identifier: MIT */
/* The node that the API sees in its tests: it is told to open a log, and a stream comes. */
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "controller/nodes/links.h"
#include "controller/nodes/streams.h"
#include "serve_later.h"

static struct {
    streams_ready_fn on_ready;
    void *arg;
    uint64_t id;
} expected;

uint64_t streams_expect(struct streams *streams, streams_ready_fn on_ready, void *arg)
{
    expected.on_ready = on_ready;
    expected.arg = arg;
    return ++expected.id;
}

void streams_set_clients(struct streams *streams, streams_client_fn on_client, void *arg)
{
}

void streams_forget(struct streams *streams, uint64_t id)
{
    current->streams_forgotten++;
    if (expected.id == id)
        expected.on_ready = NULL;
}

/* An agent with an endless log writes whenever the socket accepts it. */
static void on_agent_writable(int fd, short what, void *arg)
{
    struct harness *harness = arg;
    char block[65536];
    memset(block, 'x', sizeof(block));
    ssize_t n = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        harness->agent_sent += (uint64_t)n;
    else if (errno != EAGAIN)
        (void)event_del(harness->agent_event);
}

static void write_log(struct harness *harness, int fd)
{
    const struct message_open_log *opened = &harness->opened;
    if (harness->is_log_large) {
        harness->agent_event =
            event_new(harness->controller.loop, fd, EV_WRITE | EV_PERSIST, on_agent_writable, harness);
        (void)event_add(harness->agent_event, NULL);
        return;
    }
    size_t offset = opened->offset < harness->log_length ? (size_t)opened->offset : harness->log_length;
    size_t length = harness->log_length - offset;
    if (opened->length != 0 && opened->length < length)
        length = (size_t)opened->length;
    (void)send(fd, harness->log + offset, length, MSG_NOSIGNAL);
}

static void call_stream(struct later *later)
{
    struct harness *harness = current;
    if (expected.on_ready == NULL || expected.id != later->number)
        return;
    streams_ready_fn on_ready = expected.on_ready;
    expected.on_ready = NULL;
    if (harness->is_log_mute) {
        on_ready(expected.arg, NULL, NULL);
        return;
    }
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) < 0)
        abort();
    struct bufferevent *stream =
        bufferevent_socket_new(harness->controller.loop, ends[0], BEV_OPT_CLOSE_ON_FREE);
    const struct timeval limit = { .tv_usec = HARNESS_STREAM_MS * 1000 }; // to send its first frame
    bufferevent_set_timeouts(stream, &limit, NULL);
    (void)bufferevent_enable(stream, EV_READ);
    bufferevent_set_timeouts(stream, NULL, NULL); // while it is pending, as streams.c does
    (void)bufferevent_disable(stream, EV_READ);
    struct message_stream first = { .stream = later->number,
        .error = harness->log_error,
        .size = harness->is_log_large ? 1ULL << 40 : harness->log_length + harness->log_missing };
    if (harness->log_error == 0)
        write_log(harness, ends[1]);
    if (harness->opened.follow != 0 || harness->is_log_large) {
        if (harness->agent_fd >= 0 && !harness->keeps_streams)
            (void)close(harness->agent_fd);
        harness->agent_fd = ends[1];
    } else {
        (void)close(ends[1]);
    }
    on_ready(expected.arg, stream, &first);
}

void links_send(struct links *links, uint32_t link, const struct record_type *type, const void *message)
{
    if (type->id == MESSAGE_OPEN_LOG) {
        current->opened = *(const struct message_open_log *)message;
        current->opened.path = NULL;
    } else if (type->id == MESSAGE_OPEN_TERMINAL) {
        /* To this side a terminal is a log that is followed, and into which something can be written. */
        current->terminal = *(const struct message_open_terminal *)message;
        current->opened = (struct message_open_log){ .stream = current->terminal.stream, .follow = 1 };
    } else {
        abort();
    }
    struct later *later = later_add(LATER_CALL);
    later->call = call_stream;
    later->number = current->opened.stream;
}
