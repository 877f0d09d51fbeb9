/* SPDX-License-Identifier: MIT */
/* Takes terminal control sequences out of a run of bytes, also when a piece ends in the middle of one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum escapes_state {
    ESCAPES_TEXT,
    ESCAPES_START,        // after ESC
    ESCAPES_INTERMEDIATE, // ESC and bytes that select a character set: one more byte ends it
    ESCAPES_CSI,          // ESC [ ... up to its final byte
    ESCAPES_STRING,       // ESC ] (or P X ^ _) ... up to BEL or ESC backslash
    ESCAPES_STRING_END,   // ESC within a string
};

/* Zeroed: at the start of a text. */
struct escapes {
    enum escapes_state state;
    bool is_return_held; // dropped before a newline, as terminals end their lines
};

/* Appends what is text: everything but control sequences and control bytes other than tab, newline, return.
 */
void escapes_strip(struct escapes *escapes, const void *bytes, size_t length, struct buffer *out);
