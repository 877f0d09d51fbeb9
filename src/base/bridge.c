/* SPDX-License-Identifier: MIT */
/*
 *   plain ──bytes──> to_framed ──frames──> framed      ends with a separate frame
 *   plain <──bytes── to_plain  <──frames── framed      ends with shutdown(2) of the plain socket
 *
 * A side is read only while the buffer to the other one is short, so a slow reader makes its sender wait
 * (back-pressure), and a connection costs a bounded amount of memory.
 *
 * The job's side closes first. The client's side waits for that: its last frame may still be on the way, and
 * mgpud discards what a client that has left has sent.
 */
#include "base/bridge.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/terminal.h"

#define PIECE_MAX   32768U // bytes of one frame
#define WAITING_MAX 131072U

static const struct {
    uint8_t data, end;
} frames[2][2] = {
    [BRIDGE_JOB] = { { TERMINAL_OUTPUT, TERMINAL_OUTPUT_END }, { TERMINAL_INPUT, TERMINAL_INPUT_END } },
    [BRIDGE_CLIENT] = { { TERMINAL_INPUT, TERMINAL_INPUT_END }, { TERMINAL_OUTPUT, TERMINAL_OUTPUT_END } },
};
#define SENT     0
#define RECEIVED 1

void bridge_init(
    struct bridge *bridge, int plain_fd, int framed_fd, enum bridge_side side, const struct buffer *first)
{
    *bridge = (struct bridge){ .plain_fd = plain_fd, .framed_fd = framed_fd, .side = side };
    if (first != NULL)
        buffer_append(&bridge->input, first->bytes, first->length);
}

void bridge_clear(struct bridge *bridge)
{
    buffer_clear(&bridge->input);
    buffer_clear(&bridge->to_plain);
    buffer_clear(&bridge->to_framed);
}

static bool is_pending(const struct buffer *buffer, size_t sent)
{
    return sent < buffer->length;
}

/* --- to the framed side --- */

static void put_frame(struct bridge *bridge, uint8_t type, const void *bytes, size_t length)
{
    uint8_t head[TERMINAL_HEAD_SIZE];
    terminal_head(head, type, length);
    buffer_append(&bridge->to_framed, head, sizeof(head));
    buffer_append(&bridge->to_framed, bytes, length);
}

static int read_plain(struct bridge *bridge)
{
    uint8_t bytes[PIECE_MAX];
    ssize_t n = recv(bridge->plain_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n > 0)
        put_frame(bridge, frames[bridge->side][SENT].data, bytes, (size_t)n);
    else
        put_frame(bridge, frames[bridge->side][SENT].end, "", 0);
    bridge->is_plain_read_over = n == 0;
    return 0;
}

static int send_all(int fd, struct buffer *buffer, size_t *sent)
{
    while (is_pending(buffer, *sent)) {
        ssize_t n = send(fd, buffer->bytes + *sent, buffer->length - *sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        *sent += (size_t)n;
    }
    *sent = buffer->length = 0;
    return 0;
}

/* --- from the framed side --- */

static int take_frames(struct bridge *bridge)
{
    struct buffer *input = &bridge->input;
    while (input->length - bridge->taken >= TERMINAL_HEAD_SIZE) {
        const uint8_t *at = input->bytes + bridge->taken;
        uint8_t type;
        size_t length;
        if (!terminal_read_head(at, &type, &length))
            return -EBADMSG;
        if (input->length - bridge->taken < TERMINAL_HEAD_SIZE + length)
            break;
        if (type == frames[bridge->side][RECEIVED].data && !bridge->is_input_over)
            buffer_append(&bridge->to_plain, at + TERMINAL_HEAD_SIZE, length);
        else if (type == frames[bridge->side][RECEIVED].end)
            bridge->is_input_over = true;
        bridge->taken += TERMINAL_HEAD_SIZE + length;
    }
    size_t left = input->length - bridge->taken;
    if (left > 0 && bridge->taken > 0)
        memmove(input->bytes, input->bytes + bridge->taken, left);
    input->length = left;
    bridge->taken = 0;
    return 0;
}

static int read_framed(struct bridge *bridge)
{
    uint8_t bytes[PIECE_MAX];
    ssize_t n = recv(bridge->framed_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    bridge->is_framed_over = n == 0;
    buffer_append(&bridge->input, bytes, (size_t)n);
    return take_frames(bridge);
}

/* --- both --- */

static bool wants_plain(const struct bridge *bridge)
{
    return !bridge->is_plain_read_over && bridge->to_framed.length - bridge->framed_sent < WAITING_MAX;
}

static bool wants_framed(const struct bridge *bridge)
{
    return !bridge->is_framed_over && bridge->to_plain.length - bridge->plain_sent < WAITING_MAX;
}

void bridge_events(const struct bridge *bridge, struct pollfd fds[2])
{
    short plain = (short)((wants_plain(bridge) ? POLLIN : 0) |
                          (is_pending(&bridge->to_plain, bridge->plain_sent) ? POLLOUT : 0));
    short framed = (short)((wants_framed(bridge) ? POLLIN : 0) |
                           (is_pending(&bridge->to_framed, bridge->framed_sent) ? POLLOUT : 0));
    fds[0] = (struct pollfd){ .fd = plain != 0 ? bridge->plain_fd : -1, .events = plain };
    fds[1] = (struct pollfd){ .fd = framed != 0 ? bridge->framed_fd : -1, .events = framed };
}

static bool is_carried(const struct bridge *bridge)
{
    bool has_both_ends = bridge->is_plain_read_over && bridge->is_plain_write_over;
    return has_both_ends && !is_pending(&bridge->to_framed, bridge->framed_sent) &&
           (bridge->side == BRIDGE_JOB || bridge->is_framed_over);
}

static int end_plain(struct bridge *bridge)
{
    if (!bridge->is_input_over || bridge->is_plain_write_over ||
        is_pending(&bridge->to_plain, bridge->plain_sent))
        return 0;
    bridge->is_plain_write_over = true;
    return shutdown(bridge->plain_fd, SHUT_WR) == 0 || errno == ENOTCONN ? 0 : -errno;
}

static int advance(struct bridge *bridge, const struct pollfd fds[2])
{
    int r = take_frames(bridge); // those that arrived before the first turn
    if (r == 0 && wants_framed(bridge) && (fds[1].revents & ~POLLOUT) != 0)
        r = read_framed(bridge);
    if (r == 0 && wants_plain(bridge) && (fds[0].revents & ~POLLOUT) != 0)
        r = read_plain(bridge);
    if (r == 0)
        r = send_all(bridge->plain_fd, &bridge->to_plain, &bridge->plain_sent);
    if (r == 0)
        r = end_plain(bridge);
    if (r == 0 && !bridge->is_framed_over)
        r = send_all(bridge->framed_fd, &bridge->to_framed, &bridge->framed_sent);
    bool is_whole = bridge->is_input_over && bridge->is_plain_read_over &&
                    !is_pending(&bridge->to_framed, bridge->framed_sent);
    return r == 0 && bridge->is_framed_over && !is_whole ? -ECONNRESET : r;
}

int bridge_turn(struct bridge *bridge, const struct pollfd fds[2])
{
    static const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
    int r = advance(bridge, fds);
    if (r < 0)
        (void)setsockopt(bridge->plain_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return r < 0 ? r : is_carried(bridge);
}
