/* SPDX-License-Identifier: MIT */
/* Removes terminal control sequences from a stream of bytes that may be split anywhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum escapes_state {
    ESCAPES_TEXT,
    ESCAPES_START,        // after ESC
    ESCAPES_INTERMEDIATE, // ESC and intermediate bytes: ends with one more byte
    ESCAPES_CSI,          // ESC [ ... up to its final byte
    ESCAPES_STRING,       // ESC ] (or P X ^ _) ... up to BEL or ESC backslash
    ESCAPES_STRING_END,   // ESC within a string
};

/* To be zeroed at the start of a text. */
struct escapes {
    enum escapes_state state;
    bool is_return_held; // dropped if a newline follows, as terminals end lines with both
};

/* Appends the text: everything except control sequences and control bytes other than tab, newline, return. */
void escapes_strip(struct escapes *escapes, const void *bytes, size_t length, struct buffer *out);
