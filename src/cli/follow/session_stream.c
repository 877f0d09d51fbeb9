/* SPDX-License-Identifier: MIT */
/* Counterpart of shepherd/terminal_exec.c. */
#include "cli/follow/session_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/memory.h"

int session_stream_init(struct session_stream *stream, bool has_key)
{
    *stream = (struct session_stream){ .ring = xreallocarray(NULL, TERMINAL_KEPT_SIZE, 1) };
    resend_init(&stream->out, stream->ring, TERMINAL_KEPT_SIZE);
    while (has_key && stream->key == 0) {
        if (getrandom(&stream->key, sizeof(stream->key), 0) != (ssize_t)sizeof(stream->key))
            return -errno;
        stream->key >>= 1; // integers in JSON are signed
    }
    return 0;
}

void session_stream_clear(struct session_stream *stream)
{
    free(take_ptr(stream->ring));
}

void session_stream_join(struct session_stream *stream)
{
    stream->is_greeted = stream->key == 0;
    if (!stream->is_kept)
        (void)resend_confirm(&stream->out, stream->out.sent = stream->out.end);
}

bool session_stream_is_full(const struct session_stream *stream)
{
    bool is_ahead = stream->is_kept && stream->out.end - stream->read >= TERMINAL_INPUT_SIZE;
    return is_ahead || resend_room(&stream->out) < TERMINAL_PAYLOAD_MAX + TERMINAL_SPARE_SIZE;
}

void session_stream_put(
    struct session_stream *stream, enum terminal_frame type, const void *payload, size_t length)
{
    uint8_t head[TERMINAL_HEAD_SIZE];
    if (resend_room(&stream->out) < sizeof(head) + length)
        return; // the other side has accepted nothing for a long time, and will not accept this either
    terminal_head(head, type, length);
    (void)resend_put(&stream->out, head, sizeof(head));
    (void)resend_put(&stream->out, payload, length);
}

bool session_stream_has_more(const struct session_stream *stream)
{
    return stream->is_greeted && stream->out.sent < stream->out.end;
}

void session_stream_send(struct session_stream *stream, int fd)
{
    const uint8_t *bytes;
    while (session_stream_has_more(stream)) {
        size_t length = resend_next(&stream->out, &bytes);
        ssize_t n = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            break;
        resend_sent(&stream->out, (size_t)n);
    }
    if (!stream->is_kept && stream->is_greeted)
        (void)resend_confirm(&stream->out, stream->out.sent);
}

static void greet(struct session_stream *stream, uint8_t type, const uint8_t *payload, size_t length)
{
    stream->is_greeted = true;
    bool is_confirmation = type == TERMINAL_CONFIRMED && length == 8;
    stream->is_kept = is_confirmation && resend_rewind(&stream->out, terminal_get(payload, 8));
}

static void on_confirmed(struct session_stream *stream, uint64_t position)
{
    if (resend_confirm(&stream->out, position) && position > stream->read)
        stream->read = position;
}

bool session_stream_take(struct session_stream *stream, uint8_t type, const uint8_t *payload, size_t length)
{
    bool is_greeting = !stream->is_greeted;
    if (is_greeting)
        greet(stream, type, payload, length);
    if (!stream->is_kept)
        return false;
    if (!is_greeting) {
        stream->received += TERMINAL_HEAD_SIZE + length;
        if (type == TERMINAL_CONFIRMED && length == 8)
            on_confirmed(stream, terminal_get(payload, 8));
        if (stream->received - stream->confirmed >= TERMINAL_CONFIRM_SIZE)
            session_stream_confirm(stream);
    }
    return type == TERMINAL_CONFIRMED;
}

void session_stream_confirm(struct session_stream *stream)
{
    uint8_t number[8];
    if (!stream->is_kept || stream->confirmed == stream->received)
        return;
    stream->confirmed = stream->received;
    terminal_put(number, sizeof(number), stream->received);
    session_stream_put(stream, TERMINAL_CONFIRMED, number, sizeof(number));
}
