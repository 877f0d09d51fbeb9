/* SPDX-License-Identifier: MIT */
/*
 * The outputs of a job on its further nodes, followed beside that of the first (follow.c). Each is a stream
 * of its own, so that a node that is away keeps back nobody else's lines.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options/call.h"
#include "cli/term/labelled.h"
#include "cli/api/stream.h"

#define FOLLOW_RANKS_MAX 64U // nodes whose output is followed

struct rank_log {
    struct stream stream;
    struct labelled lines;
    uint32_t rank;
    bool is_last; // what is asked now was asked when the job was over
    bool is_over;
};

struct follow_ranks {
    struct call *call;
    uint64_t job;
    int64_t attempt;
    struct rank_log *items; // of the ranks from 1 on
    size_t count;
};

/* Begins to follow ranks 1 to `count` - 1, as far as that has not begun; lines go to `put`. */
void follow_ranks_open(struct follow_ranks *ranks, size_t count,
    int (*put)(void *arg, const void *bytes, size_t length), void *arg);

/* Fills in one descriptor for each; the milliseconds until one has something to do by itself, -1: none. */
int follow_ranks_poll(const struct follow_ranks *ranks, bool is_held, struct pollfd *fds);

/* Reads what is there. `is_job_over`: what then ends has ended for good. */
int follow_ranks_advance(
    struct follow_ranks *ranks, const struct pollfd *fds, bool is_job_over, struct error *err);

/* Nothing more comes of what is being read, in an attempt that is over. */
bool follow_ranks_are_read(const struct follow_ranks *ranks);
bool follow_ranks_are_over(const struct follow_ranks *ranks);
void follow_ranks_clear(struct follow_ranks *ranks);
