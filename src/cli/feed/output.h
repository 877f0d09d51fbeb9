/* SPDX-License-Identifier: MIT */
/* The output of the jobs of `scheduler start`, shown on its terminal as it comes. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/api/client.h"

#define FEED_OUTPUTS_MAX 32U // jobs whose output is shown at once; each has a connection

struct feed_output;

struct feed_outputs {
    struct feed_output *first;
    size_t count;
};

/* Shows the output of this attempt of a job from its beginning. False when too many are shown already. */
bool feed_outputs_add(struct feed_outputs *outputs, struct client *client, int64_t job, int64_t attempt);

/* Fills FEED_OUTPUTS_MAX + 1 descriptors to poll; milliseconds until something is due anyway, or -1. */
int feed_outputs_poll(const struct feed_outputs *outputs, struct pollfd *fds);

/* Shows what has come. An output that has ended, or cannot be had, is given up; the log has it. */
void feed_outputs_advance(struct feed_outputs *outputs, const struct pollfd *fds);
void feed_outputs_clear(struct feed_outputs *outputs);
