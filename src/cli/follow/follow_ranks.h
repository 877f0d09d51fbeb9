/* SPDX-License-Identifier: MIT */
/*
 * Follows the output of a job on its other nodes, beside that of the first (follow.c). Each is a stream of
 * its own, so an unreachable node does not delay the others.
 */
#pragma once

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options/call.h"
#include "cli/term/labelled.h"
#include "cli/api/stream.h"

#define FOLLOW_RANKS_MAX 64U // maximum number of nodes followed

struct rank_log {
    struct stream stream;
    struct labelled lines;
    uint32_t rank;
    bool is_last; // the current requests were sent after the job had ended
    bool is_over;
};

struct follow_ranks {
    struct call *call;
    uint64_t job;
    int64_t attempt;
    struct rank_log *items; // for the ranks from 1 on
    size_t count;
};

/* On how many nodes the job has output: as many as it has, or will have if it requested a number. */
size_t follow_ranks_count(const json_t *job);

/* Starts following ranks 1 to `count` - 1, unless already started; lines are passed to `put`. */
void follow_ranks_open(struct follow_ranks *ranks, size_t count,
    int (*put)(void *arg, const void *bytes, size_t length), void *arg);

/* Fills in one descriptor each; returns milliseconds until one has something to do without input, -1:
 * none. */
int follow_ranks_poll(const struct follow_ranks *ranks, bool is_held, struct pollfd *fds);

/* Reads available data. `is_job_over`: streams that end now have ended finally. */
int follow_ranks_advance(
    struct follow_ranks *ranks, const struct pollfd *fds, bool is_job_over, struct error *err);

/* True when all output of an ended attempt has been read. */
bool follow_ranks_are_read(const struct follow_ranks *ranks);
bool follow_ranks_are_over(const struct follow_ranks *ranks);
void follow_ranks_clear(struct follow_ranks *ranks);
