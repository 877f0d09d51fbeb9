/* SPDX-License-Identifier: MIT */
/* Parses the status reports of a job line by line: bytes in, the latest value of each kind out. Pure, with a
 * fixed size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spool.h"

#define STATUS_LINE_MAX 4096U // bytes; writes up to this size are atomic (PIPE_BUF)

struct status_parser {
    struct spool_report latest;
    char line[STATUS_LINE_MAX]; // the beginning of a line not yet complete
    size_t length;
    bool is_too_long; // the rest of this line is skipped
};

/* Adds bytes received at `wall_ms`. True if CHECKPOINTED was among them. */
bool status_parser_add(struct status_parser *parser, int64_t wall_ms, const char *bytes, size_t length);

/* End of input: a last line needs no newline. */
bool status_parser_end(struct status_parser *parser, int64_t wall_ms);
