/* SPDX-License-Identifier: MIT */
/*
 * Each direction has a bounded buffer. While it is full, its source is not read. A client that stops reading
 * therefore costs only that buffer, and the node's end waits or lags (shepherd/terminal_process.c). Data that
 * can be sent is sent at once, so a keystroke does not wait for another turn of the loop.
 *
 * If the node's end accepts no more bytes, its last output is still read to the end, and input from the
 * client is dropped.
 */
#include "controller/http/relay.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "controller/http/connection.h"
#include "wire/limits.h"

#define PIECE_MAX (64U << 10) // bytes per read from the node

struct relay {
    struct request *request;
    struct bufferevent *stream;
    bool is_stream_over;
    bool is_stream_deaf; // the stream accepts no more bytes
};

void relay_free(struct relay *relay)
{
    if (relay == NULL)
        return;
    bufferevent_free(relay->stream);
    free(relay);
}

/* --- from the node to the client --- */

/* libevent reads 4 KiB at a time, so the rest is read here. False if nothing more is available now. */
static bool fetch(struct relay *relay, struct evbuffer *to)
{
    struct evbuffer_iovec space;
    if (evbuffer_reserve_space(to, PIECE_MAX, &space, 1) < 1)
        abort(); // memory
    size_t wanted = space.iov_len < PIECE_MAX ? space.iov_len : PIECE_MAX;
    ssize_t n = recv(bufferevent_getfd(relay->stream), space.iov_base, wanted, MSG_DONTWAIT);
    if (n == 0)
        relay->is_stream_over = true;
    space.iov_len = n > 0 ? (size_t)n : 0;
    (void)evbuffer_commit_space(to, &space, 1);
    return n == (ssize_t)wanted;
}

static void finish(struct relay *relay)
{
    struct request *request = relay->request;
    (void)bufferevent_disable(relay->stream, EV_READ);
    request->on_drained = NULL;
    connection_finish_answer(request->connection, false);
}

static void pump_out(struct request *request)
{
    struct relay *relay = request->work_relay;
    struct evbuffer *input = bufferevent_get_input(relay->stream);
    struct evbuffer *output = connection_output(request->connection);
    bool is_more = !relay->is_stream_over;
    (void)evbuffer_add_buffer(output, input);
    while (is_more && evbuffer_get_length(output) < LIMIT_STREAM_BUFFER_BYTES)
        is_more = fetch(relay, output);
    connection_flush(request->connection);
    if (relay->is_stream_over)
        finish(relay);
    else if (evbuffer_get_length(output) >= LIMIT_STREAM_BUFFER_BYTES)
        (void)bufferevent_disable(relay->stream, EV_READ);
    else
        (void)bufferevent_enable(relay->stream, EV_READ);
}

static void on_stream_bytes(struct bufferevent *stream, void *arg)
{
    pump_out(arg);
}

/* --- from the client to the node --- */

static void drop_input(struct request *request)
{
    struct evbuffer *input = connection_input(request->connection);
    request->work_relay->is_stream_deaf = true;
    (void)evbuffer_drain(input, evbuffer_get_length(input));
    connection_hold_input(request->connection, false);
}

static void pump_in(struct request *request)
{
    struct relay *relay = request->work_relay;
    struct evbuffer *input = connection_input(request->connection);
    struct evbuffer *output = bufferevent_get_output(relay->stream);
    while (!relay->is_stream_deaf && evbuffer_get_length(output) == 0 && evbuffer_get_length(input) > 0) {
        size_t length = evbuffer_get_contiguous_space(input);
        ssize_t n = send(bufferevent_getfd(relay->stream), evbuffer_pullup(input, (ev_ssize_t)length), length,
            MSG_DONTWAIT | MSG_NOSIGNAL);
        relay->is_stream_deaf = n < 0 && errno != EAGAIN && errno != EINTR;
        if (n <= 0)
            break;
        (void)evbuffer_drain(input, (size_t)n);
    }
    if (relay->is_stream_deaf) {
        drop_input(request);
        return;
    }
    if (evbuffer_get_length(output) < LIMIT_STREAM_BUFFER_BYTES)
        (void)bufferevent_write_buffer(relay->stream, input);
    connection_hold_input(request->connection, evbuffer_get_length(output) >= LIMIT_STREAM_BUFFER_BYTES);
}

static void on_stream_room(struct bufferevent *stream, void *arg)
{
    pump_in(arg);
}

static void on_stream_condition(struct bufferevent *stream, short what, void *arg)
{
    struct request *request = arg;
    if ((what & BEV_EVENT_WRITING) != 0) {
        drop_input(request);
        return;
    }
    request->work_relay->is_stream_over = true;
    pump_out(request);
}

void relay_begin(struct request *request, const char *protocol, struct bufferevent *stream)
{
    if (request_is_over(request)) {
        bufferevent_free(stream);
        return;
    }
    struct relay *relay = xcalloc(1, sizeof(*relay));
    *relay = (struct relay){ .request = request, .stream = stream };
    request->work_relay = relay;
    _cleanup_free_ char *head =
        xasprintf("HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n\r\n", protocol);
    request->phase = REQUEST_STREAMING;
    connection_write(request->connection, head, strlen(head));
    request->on_input = pump_in;
    request->on_drained = pump_out;
    connection_take_over(request->connection);
    connection_watch_output(request->connection, LIMIT_STREAM_BUFFER_BYTES / 4);
    bufferevent_setcb(stream, on_stream_bytes, on_stream_room, on_stream_condition, request);
    (void)bufferevent_enable(stream, EV_READ | EV_WRITE);
    request_ref(request);
    pump_out(request);
    if (!request_is_over(request) && !relay->is_stream_over)
        pump_in(request);
    request_unref(request);
}
