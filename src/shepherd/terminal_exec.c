/* SPDX-License-Identifier: MIT */
/*
 * The greeting of a connection is sent through the viewer's own frame, ahead of the kept frames, because it
 * is not part of the counted stream.
 */
#include "shepherd/terminal_exec.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static uint8_t ring[TERMINAL_KEPT_SIZE], input_ring[TERMINAL_INPUT_SIZE + TERMINAL_PAYLOAD_MAX];

void exec_stream_init(struct exec_stream *stream, bool can_return)
{
    *stream = (struct exec_stream){ .can_return = can_return };
    resend_init(&stream->out, ring, sizeof(ring));
    resend_init(&stream->input, input_ring, sizeof(input_ring));
}

size_t exec_stream_room(const struct exec_stream *stream)
{
    size_t room = resend_room(&stream->out), kept_free = TERMINAL_SPARE_SIZE + TERMINAL_HEAD_SIZE;
    /* Without a key there is at most one frame: the step waits for its viewer. */
    if (!stream->can_return && room < stream->out.size)
        return 0;
    size_t most = room > kept_free ? room - kept_free : 0;
    return most < TERMINAL_PAYLOAD_MAX ? most : TERMINAL_PAYLOAD_MAX;
}

void exec_stream_put(struct exec_stream *stream, enum terminal_frame type, const void *payload, size_t length)
{
    uint8_t head[TERMINAL_HEAD_SIZE];
    if (resend_room(&stream->out) < sizeof(head) + length)
        return;
    terminal_head(head, type, length);
    (void)resend_put(&stream->out, head, sizeof(head));
    (void)resend_put(&stream->out, payload, length);
}

bool exec_stream_greet(struct exec_stream *stream, struct viewer *viewer, uint64_t position)
{
    uint8_t number[8];
    if (!stream->can_return) {
        terminal_put(number, sizeof(number), 0);
        viewer_put(viewer, TERMINAL_POSITION, number, sizeof(number));
        return true;
    }
    if (!resend_rewind(&stream->out, position))
        return false;
    terminal_put(number, sizeof(number), viewer->taken);
    viewer_put(viewer, TERMINAL_CONFIRMED, number, sizeof(number));
    return true;
}

bool exec_stream_send(struct exec_stream *stream, struct viewer *viewer)
{
    const uint8_t *bytes;
    size_t length;
    if (!viewer_send(viewer))
        return false;
    while (viewer_is_idle(viewer) && (length = resend_next(&stream->out, &bytes)) > 0) {
        ssize_t n = send(viewer->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            viewer_close(viewer);
            return false;
        }
        resend_sent(&stream->out, (size_t)n);
    }
    if (!stream->can_return)
        (void)resend_confirm(&stream->out, stream->out.sent);
    return true;
}

bool exec_stream_has_more(const struct exec_stream *stream, const struct viewer *viewer)
{
    return !viewer_is_idle(viewer) || stream->out.sent < stream->out.end;
}

void exec_stream_confirm(struct exec_stream *stream, uint64_t position)
{
    if (stream->can_return)
        (void)resend_confirm(&stream->out, position);
}

void exec_stream_answer(struct exec_stream *stream, const struct viewer *viewer)
{
    uint8_t number[8];
    uint64_t read = viewer->taken - (stream->input.end - stream->input.begin);
    bool is_due = stream->can_return && read >= stream->confirmed + TERMINAL_CONFIRM_SIZE;
    if (!is_due || resend_room(&stream->out) < TERMINAL_HEAD_SIZE + sizeof(number))
        return;
    stream->confirmed = read;
    terminal_put(number, sizeof(number), read);
    exec_stream_put(stream, TERMINAL_CONFIRMED, number, sizeof(number));
}

size_t exec_stream_take_input(struct exec_stream *stream, const uint8_t *bytes, size_t length)
{
    size_t room = resend_room(&stream->input);
    if (room < length)
        length = room; // a client that does not wait for confirmations
    return resend_put(&stream->input, bytes, length) ? length : 0;
}

bool exec_stream_write_input(struct exec_stream *stream, struct input_pipe *to)
{
    const uint8_t *bytes;
    size_t length;
    while ((length = resend_next(&stream->input, &bytes)) > 0) {
        size_t n = input_pipe_write(to, bytes, length);
        if (n == 0)
            return false;
        resend_sent(&stream->input, n);
        (void)resend_confirm(&stream->input, stream->input.sent);
    }
    return true;
}

bool exec_stream_is_over(const struct exec_stream *stream, const struct viewer *viewer)
{
    bool is_sent = !exec_stream_has_more(stream, viewer);
    return is_sent && stream->out.begin == stream->out.end;
}
