/* SPDX-License-Identifier: MIT */
/* The connections of `mgpu top`: for requests, for /events, and for the followed log. None of them blocks the
 * display. */
#pragma once

#include <poll.h>

#include "cli/top/top.h"

#define TOP_FDS 4

void top_wire_init(struct top *top);
void top_wire_clear(struct top *top);

/* Does what is due, and processes the descriptors that are `is_ready` (NULL: none). */
void top_wire_advance(struct top *top, const bool *is_ready);

/* The connections were not read for a while: sends all requests again. */
void top_wire_resume(struct top *top);

/* Descriptors to poll for reading, -1: none. */
void top_wire_fds(const struct top *top, int fds[TOP_FDS]);

/* Milliseconds until something is due, at most `most`. */
int top_wire_wait_ms(const struct top *top, int most);

/* Seconds since the last data from mgpud; 0 while connected. */
int64_t top_wire_lost_s(const struct top *top);

/* Waits for the answers to all currently wanted requests; for --once. */
int top_wire_await_answers(struct top *top, int timeout_ms, struct error *err);

/* Waits a short time for the first output of the followed log. */
int top_wire_await_log(struct top *top, int timeout_ms, struct error *err);
