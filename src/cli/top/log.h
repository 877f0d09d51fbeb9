/* SPDX-License-Identifier: MIT */
/* The end of the output of the selected job: of both its logs if standard error has a separate one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/api/stream.h"
#include "cli/top/tail.h"

struct top;

#define TOP_LOG_PARTS 2 // standard output, or both; and standard error

struct top_log_part {
    struct top *top;
    struct stream stream;
    int status;       // of the answer, 0: not received
    int64_t again_ms; // boot clock: next try; 0: none
    int64_t second;   // boot clock in seconds, and bytes received in that second
    size_t second_bytes;
};

struct top_log {
    struct top_log_part parts[TOP_LOG_PARTS];
    size_t count;                    // of those that the job has
    const struct top_log_part *last; // whose bytes are at the end of the tail
    struct tail tail;
    int64_t job, attempt; // each attempt has its own output; job 0: none
    char problem[256];    // why it cannot be read
};

/* Follows the output of that job; 0: of none. No effect if it is already followed, unless the job has been
 * restarted meanwhile. */
void top_log_follow(struct top *top, int64_t job);

/* `is_readable`: the descriptor of each part. */
void top_log_advance(struct top *top, const bool is_readable[TOP_LOG_PARTS]);

/* When the next advance has something to do without input (boot clock); INT64_MAX: never. */
int64_t top_log_due_ms(const struct top_log *log);

/* Each part has output, or will have none. */
bool top_log_is_settled(const struct top_log *log);
void top_log_clear(struct top_log *log);
