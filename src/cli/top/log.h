/* SPDX-License-Identifier: MIT */
/* The end of the output of the selected job. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/api/stream.h"
#include "cli/top/tail.h"

struct top;

struct top_log {
    struct stream stream;
    struct tail tail;
    int64_t job, attempt; // each attempt has its own output; job 0: none
    int status;           // of the answer, 0: not received
    char problem[256];    // why it cannot be read
    int64_t again_ms;     // boot clock: next try; 0: none
    int64_t second;       // boot clock in seconds, and bytes received in that second
    size_t second_bytes;
};

/* Follows the output of that job; 0: of none. No effect if it is already followed, unless the job has been
 * restarted meanwhile. */
void top_log_follow(struct top *top, int64_t job);

void top_log_advance(struct top *top, bool is_readable);
void top_log_clear(struct top_log *log);
