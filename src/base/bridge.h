/* SPDX-License-Identifier: MIT */
/*
 * Copies between a plain socket and one that carries frames of base/terminal.h, in both directions, until
 * both have ended. The end of one direction is a frame, so that the other continues (half-close). If the
 * framed side closes without that frame, the plain one is reset, so that its peer does not take a part for
 * the whole.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum bridge_side {
    BRIDGE_JOB,    // the plain socket leads to a port of a job
    BRIDGE_CLIENT, // it is a connection of the caller
};

struct bridge {
    int plain_fd, framed_fd; // not blocking, owned by the caller
    enum bridge_side side;
    struct buffer input; // frames from the framed side that are not decoded yet
    size_t taken;
    struct buffer to_plain, to_framed;
    size_t plain_sent, framed_sent;
    bool is_plain_read_over;  // the plain side sends no more
    bool is_plain_write_over; // it knows that nothing more follows
    bool is_input_over;       // the frame that ends the direction has arrived
    bool is_framed_over;      // the framed side has closed
};

/* `first`: bytes already read from the framed side, or NULL. */
void bridge_init(
    struct bridge *bridge, int plain_fd, int framed_fd, enum bridge_side side, const struct buffer *first);

/* What to wait for: [0] is the plain socket, [1] the framed one. A descriptor of -1 is not waited for. */
void bridge_events(const struct bridge *bridge, struct pollfd fds[2]);

/* Does what is possible now. 1: everything has been carried and both sides may be closed; 0: there is more to
 * come; a negative errno: the connection was cut, and the plain socket will be reset when it is closed. */
int bridge_turn(struct bridge *bridge, const struct pollfd fds[2]);

void bridge_clear(struct bridge *bridge);
