/* SPDX-License-Identifier: MIT */
/* The last lines of a log as plain text: without control sequences, and with the current state of progress
 * bars. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "cli/term/escapes.h"

#define TAIL_LINES      2000
#define TAIL_LINE_BYTES 4096 // of a line; the rest is dropped

struct tail {
    struct escapes escapes;
    char **lines; // a ring
    size_t first, count;
    struct buffer open; // the incomplete line
};

/* Appends output of the job. */
void tail_add(struct tail *tail, const void *bytes, size_t length);

/* Ends an incomplete line: text that is appended next is on its own line. */
void tail_end_line(struct tail *tail);

/* The number of lines, including the incomplete one, and the i-th of them; valid until the next add. */
size_t tail_count(const struct tail *tail);
const char *tail_line(struct tail *tail, size_t i);

void tail_clear(struct tail *tail);
