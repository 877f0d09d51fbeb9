/* SPDX-License-Identifier: MIT */
/* Shows the output of jobs of `scheduler start` on its terminal. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/api/client.h"

#define FEED_OUTPUTS_MAX 32U // jobs whose output is shown at a time; each needs a connection

struct feed_output;

struct feed_outputs {
    struct feed_output *first;
    size_t count;
};

/* Shows the output of this attempt from its beginning. False if too many are shown already. */
bool feed_outputs_add(struct feed_outputs *outputs, struct client *client, int64_t job, int64_t attempt);

/* Fills in FEED_OUTPUTS_MAX + 1 descriptors to poll; returns milliseconds until something is due without
 * input, or -1. */
int feed_outputs_poll(const struct feed_outputs *outputs, struct pollfd *fds);

/* Shows new output. An output that has ended or is unavailable is dropped; the log contains it. */
void feed_outputs_advance(struct feed_outputs *outputs, const struct pollfd *fds);
void feed_outputs_clear(struct feed_outputs *outputs);
