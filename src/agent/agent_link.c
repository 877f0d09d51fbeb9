/* SPDX-License-Identifier: MIT */
#include "agent/agent_link.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "wire/frame.h"
#include "wire/order_check.h"

struct agent_link {
    struct bufferevent *stream;
    agent_link_message_fn *on_message;
    agent_link_closed_fn *on_closed;
    void *arg;
    bool has_long; // a message was too long; logged once
};

static void close_link(struct agent_link *link, const struct error *err)
{
    (void)bufferevent_disable(link->stream, EV_READ | EV_WRITE);
    link->on_closed(link->arg, err);
}

/* Defects in LAUNCH and in a notice are answered, so the message is not sent again; any other message that
 * arrives incomplete is treated as lost. Without WELCOME there is no link. */
static int take_defective(struct agent_link *link, uint16_t id, void *message, struct error *err)
{
    const struct error why = *err;
    if (id == MESSAGE_WELCOME || id == MESSAGE_REFUSED)
        return why.code;
    if (id == MESSAGE_LAUNCH)
        ((struct message_launch *)message)->defect = why.message;
    else if (id == MESSAGE_NOTIFY)
        ((struct message_notify *)message)->defect = why.message;
    log_error("from the controller: %s: %s", message_type(id)->name, why.message);
    *err = (struct error){ 0 };
    return id == MESSAGE_LAUNCH || id == MESSAGE_NOTIFY ? link->on_message(link->arg, id, message, err) : 0;
}

static int take(
    void *arg, enum frame_taken taken, const struct record_type *type, void *message, struct error *err)
{
    struct agent_link *link = arg;
    bool is_sound = taken == FRAME_WHOLE && order_check(type, message, err) == 0;
    return is_sound ? link->on_message(link->arg, type->id, message, err)
                    : take_defective(link, type->id, message, err);
}

static void on_read(struct bufferevent *stream, void *arg)
{
    struct error err;
    if (frame_take_all(stream, LINK_MESSAGE_MAX, take, arg, &err) < 0)
        close_link(arg, &err);
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
    struct error err = { 0 };
    int r = frame_send(link->stream, type, message, &err);
    if (r != 0 && !link->has_long)
        log_error("to the controller: %s; %s", err.message,
            r > 0 ? "it is sent without its lists; reported only once"
                  : "it is not sent; reported only once");
    link->has_long |= r != 0;
}

size_t agent_link_backlog(struct agent_link *link)
{
    return evbuffer_get_length(bufferevent_get_output(link->stream));
}

void agent_link_end(struct agent_link *link)
{
    bufferevent_trigger_event(link->stream, BEV_EVENT_EOF, BEV_TRIG_DEFER_CALLBACKS);
}

void agent_link_free(struct agent_link *link)
{
    if (link == NULL)
        return;
    bufferevent_free(link->stream);
    free(link);
}
