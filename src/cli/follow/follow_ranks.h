/* SPDX-License-Identifier: MIT */
/*
 * Follows further logs of a job beside that of its first node (follow.c): its output on the other nodes, or
 * standard error of all nodes. Each is a separate stream, so an unreachable node does not delay the others.
 */
#pragma once

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/api/stream.h"
#include "cli/options/call.h"
#include "cli/term/labelled.h"

#define FOLLOW_RANKS_MAX 64U // maximum number of nodes followed

struct rank_log {
    struct stream stream;
    struct labelled lines;
    uint32_t rank;
    bool is_labelled;
    bool is_last; // the current requests were sent after the job had ended
    bool is_over;
};

struct follow_ranks {
    struct call *call;
    uint64_t job;
    int64_t attempt;
    const char *stream;     // "stderr": that log of each; NULL: that of standard output
    uint32_t first;         // the lowest rank
    struct rank_log *items; // for the ranks from `first` on
    size_t count;
};

/* On how many nodes this attempt of the job has output: as many as it has, or will have if the job requested
 * a number; or had, if it was requeued. */
size_t follow_ranks_count(const json_t *job, int64_t attempt);

/* Starts following those of the ranks below `count` that it does not follow yet. Their output is passed to
 * `put`, in lines with a label if there are several. */
void follow_ranks_open(struct follow_ranks *ranks, size_t count,
    int (*put)(void *arg, const void *bytes, size_t length), void *arg);

/* Fills in one descriptor each; returns milliseconds until one has something to do without input, -1:
 * none. */
int follow_ranks_poll(const struct follow_ranks *ranks, bool is_held, struct pollfd *fds);

/* Reads available data. `fds` has those of the first `count`. `is_job_over`: streams that end now are
 * final. */
int follow_ranks_advance(
    struct follow_ranks *ranks, const struct pollfd *fds, size_t count, bool is_job_over, struct error *err);

/* True when all output of an ended attempt has been read. */
bool follow_ranks_are_read(const struct follow_ranks *ranks);
bool follow_ranks_are_over(const struct follow_ranks *ranks);
void follow_ranks_clear(struct follow_ranks *ranks);

/* Forgets them, to begin with those of this attempt. */
void follow_ranks_reset(struct follow_ranks *ranks, struct call *call, uint64_t job, int64_t attempt);
