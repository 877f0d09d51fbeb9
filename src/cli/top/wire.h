/* SPDX-License-Identifier: MIT */
/* The connections of `mgpu top`: one for questions, one for /events, one for the log that is followed. None
 * of them ever makes the screen wait. */
#pragma once

#include <poll.h>

#include "cli/top/top.h"

#define TOP_FDS 3

void top_wire_init(struct top *top);
void top_wire_clear(struct top *top);

/* Does what is due, and what the descriptors that are `is_ready` allow (NULL: none). */
void top_wire_advance(struct top *top, const bool *is_ready);

/* Nobody has listened for a while: asks for everything anew. */
void top_wire_resume(struct top *top);

/* Descriptors to poll for reading, -1: none. */
void top_wire_fds(const struct top *top, int fds[TOP_FDS]);

/* Milliseconds until something is due, at most `most`. */
int top_wire_wait_ms(const struct top *top, int most);

/* Seconds since mgpud was heard last; 0 while all is well. */
int64_t top_wire_lost_s(const struct top *top);

/* Waits until the answer to each question that is wanted now is there; for --once. */
int top_wire_settle(struct top *top, int timeout_ms, struct error *err);

/* Waits a little for the first output of the log that is followed. */
int top_wire_settle_log(struct top *top, int timeout_ms, struct error *err);
