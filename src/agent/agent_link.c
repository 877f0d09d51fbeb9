/* SPDX-License-Identifier: MIT */
#include "agent/agent_link.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/memory.h"

struct agent_link {
    struct bufferevent *stream;
    agent_link_message_fn *on_message;
    agent_link_closed_fn *on_closed;
    void *arg;
};

static void close_link(struct agent_link *link, const struct error *err)
{
    (void)bufferevent_disable(link->stream, EV_READ | EV_WRITE);
    link->on_closed(link->arg, err);
}

/* One whole frame, decoded and handed over. */
static int take_frame(struct agent_link *link, uint16_t id, size_t length, struct error *err)
{
    struct evbuffer *input = bufferevent_get_input(link->stream);
    const struct record_type *type = message_type(id);
    if (type == NULL)
        return error_set(err, -EPROTO, "the controller sent a message of unknown type %u", id);
    _cleanup_free_ void *message = xcalloc(1, type->size);
    int r = record_decode(type, evbuffer_pullup(input, (ssize_t)length), length, message, err);
    if (r < 0)
        return error_wrap(err, "the controller sent a broken %s", type->name);
    (void)evbuffer_drain(input, length);
    r = link->on_message(link->arg, id, message, err);
    record_clear(type, message);
    return r;
}

static void on_read(struct bufferevent *stream, void *arg)
{
    struct agent_link *link = arg;
    struct evbuffer *input = bufferevent_get_input(stream);
    struct error err = { 0 };
    for (;;) {
        uint16_t id;
        size_t length, available = evbuffer_get_length(input);
        size_t head = available < RECORD_HEADER_SIZE ? available : RECORD_HEADER_SIZE;
        int r = record_peek(evbuffer_pullup(input, (ssize_t)head), head, LINK_MESSAGE_MAX, &id, &length);
        if (r < 0)
            (void)error_set(&err, r, "the controller sent something that is no message");
        else if (length == 0 || length > available)
            return;
        else
            r = take_frame(link, id, length, &err);
        if (r < 0) {
            close_link(link, &err);
            return;
        }
    }
}

static void on_event(struct bufferevent *stream, short what, void *arg)
{
    struct error err = { 0 };
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0)
        close_link(arg, &err);
}

struct agent_link *agent_link_new(struct event_base *base, int fd, agent_link_message_fn *on_message,
    agent_link_closed_fn *on_closed, void *arg)
{
    struct agent_link *link = xcalloc(1, sizeof(*link));
    (void)evutil_make_socket_nonblocking(fd);
    link->stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (link->stream == NULL)
        abort(); // memory
    link->on_message = on_message;
    link->on_closed = on_closed;
    link->arg = arg;
    bufferevent_setcb(link->stream, on_read, NULL, on_event, link);
    (void)bufferevent_enable(link->stream, EV_READ | EV_WRITE);
    return link;
}

void agent_link_send(struct agent_link *link, const struct record_type *type, const void *message)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    size_t sent = 0;
    record_encode(type, message, &bytes);
    if (agent_link_backlog(link) == 0) { // at once, without another turn of the loop
        ssize_t n =
            send(bufferevent_getfd(link->stream), bytes.bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent = n > 0 ? (size_t)n : 0;
    }
    if (sent < bytes.length && bufferevent_write(link->stream, bytes.bytes + sent, bytes.length - sent) < 0)
        abort(); // memory
}

size_t agent_link_backlog(struct agent_link *link)
{
    return evbuffer_get_length(bufferevent_get_output(link->stream));
}

void agent_link_free(struct agent_link *link)
{
    if (link == NULL)
        return;
    bufferevent_free(link->stream);
    free(link);
}
