/* SPDX-License-Identifier: MIT */
/* The end of the output of one job, followed for as long as the job is selected. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/api/stream.h"
#include "cli/top/tail.h"

struct top;

struct top_log {
    struct stream stream;
    struct tail tail;
    int64_t job, attempt; // each attempt has output of its own; job 0: nobody's
    int status;           // of the answer, 0: none yet
    char problem[256];    // why it cannot be read
    int64_t again_ms;     // boot clock: when it is asked for again; 0: not
    int64_t second;       // of the boot clock, and how much came in it
    size_t second_bytes;
};

/* Follows the output of that job instead; 0: nobody's. Doing it again changes nothing, unless the job has
 * been started anew meanwhile. */
void top_log_follow(struct top *top, int64_t job);

void top_log_advance(struct top *top, bool is_readable);
void top_log_clear(struct top_log *log);
