/* SPDX-License-Identifier: MIT */
#include "wire/frame.h"

#include <errno.h>
#include <event2/buffer.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "wire/message.h"

/* An unknown message of a newer mgpu, which is ignored: adjacent versions are compatible. */
static int pass_over(struct evbuffer *input, uint16_t id, size_t length, struct error *err)
{
    uint8_t nothing = 0;
    const struct record_type unknown = { .id = id, .name = "unknown" };
    int r = record_decode(&unknown, evbuffer_pullup(input, (ev_ssize_t)length), length, &nothing, err);
    return r < 0 ? r : evbuffer_drain(input, length);
}

/* The first known message; *ret_length 0: it is incomplete. */
static int find_message(struct evbuffer *input, size_t max_length, const struct record_type **ret_type,
    size_t *ret_length, struct error *err)
{
    for (;;) {
        uint8_t head[RECORD_HEADER_SIZE];
        ev_ssize_t n = evbuffer_copyout(input, head, sizeof(head));
        uint16_t id = 0;
        int r = record_peek(head, n > 0 ? (size_t)n : 0, max_length, &id, ret_length);
        if (r < 0)
            return error_set(err, r, "received data is not a frame, or exceeds %zu bytes", max_length);
        if (evbuffer_get_length(input) < *ret_length)
            *ret_length = 0;
        *ret_type = message_type(id);
        if (*ret_length == 0 || *ret_type != NULL)
            return 0;
        r = pass_over(input, id, *ret_length, err);
        if (r < 0)
            return r;
    }
}

int frame_take(struct bufferevent *stream, size_t max_length, const struct record_type **ret_type,
    void **ret_message, struct error *err)
{
    struct evbuffer *input = bufferevent_get_input(stream);
    const struct record_type *type = NULL;
    size_t length = 0;
    int r = find_message(input, max_length, &type, &length, err);
    if (r < 0 || length == 0)
        return r < 0 ? r : FRAME_NONE;
    _cleanup_free_ void *message = xcalloc(1, type->size);
    r = record_decode_partly(type, evbuffer_pullup(input, (ev_ssize_t)length), length, message, err);
    if (r < 0)
        return r;
    (void)evbuffer_drain(input, length);
    *ret_type = type;
    *ret_message = take_ptr(message);
    return r == 0 ? FRAME_WHOLE : FRAME_PARTLY;
}

int frame_take_all(
    struct bufferevent *stream, size_t max_length, frame_taker_fn *taker, void *arg, struct error *err)
{
    for (;;) {
        const struct record_type *type = NULL;
        void *message = NULL;
        *err = (struct error){ 0 };
        int r = frame_take(stream, max_length, &type, &message, err);
        if (r == FRAME_NONE)
            return 0;
        if (r > 0) {
            r = taker(arg, (enum frame_taken)r, type, message, err);
            frame_free(type, message);
        }
        if (r < 0)
            return r;
    }
}

void frame_free(const struct record_type *type, void *message)
{
    record_clear(type, message);
    free(message);
}

/* 1: without the spare fields. */
static int encode(
    const struct record_type *type, const void *message, struct buffer *bytes, struct error *err)
{
    record_encode(type, message, bytes);
    if (bytes->length <= LINK_MESSAGE_MAX)
        return 0;
    (void)error_set(
        err, -EMSGSIZE, "%s would have %zu bytes; at most %u", type->name, bytes->length, LINK_MESSAGE_MAX);
    buffer_clear(bytes);
    record_encode_bare(type, message, bytes);
    return bytes->length <= LINK_MESSAGE_MAX ? 1 : err->code;
}

int frame_send(
    struct bufferevent *stream, const struct record_type *type, const void *message, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    size_t sent = 0;
    int result = encode(type, message, &bytes, err);
    if (result < 0)
        return result;
    /* Saves a turn of the loop: there are four messages between a freed GPU and the start of its next job.
     */
    if (evbuffer_get_length(bufferevent_get_output(stream)) == 0) {
        ssize_t n = send(bufferevent_getfd(stream), bytes.bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL);
        sent = n > 0 ? (size_t)n : 0;
    }
    if (sent < bytes.length && bufferevent_write(stream, bytes.bytes + sent, bytes.length - sent) < 0)
        abort(); // memory
    return result;
}
