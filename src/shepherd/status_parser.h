/* SPDX-License-Identifier: MIT */
/* What a job says of itself, line by line: bytes in, the latest of each kind out. Pure, and of a fixed size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spool.h"

#define SAID_LINE_MAX 4096U // bytes; a write of so many is never mixed with another's (PIPE_BUF)

struct status_parser {
    struct spool_said latest;
    char line[SAID_LINE_MAX]; // the start of a line whose end is not there yet
    size_t length;
    bool is_too_long; // the rest of this line is passed over
};

/* Takes more bytes, which came at `wall_ms`. True when CHECKPOINTED was among them. */
bool status_parser_add(struct status_parser *said, int64_t wall_ms, const char *bytes, size_t length);

/* There will be no more: a last line needs no newline. */
bool status_parser_end(struct status_parser *said, int64_t wall_ms);
