/* SPDX-License-Identifier: MIT */
/* Removes terminal control sequences from a stream of bytes that may be split anywhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum escapes_state {
    ESCAPES_TEXT,
    ESCAPES_START,        // after ESC
    ESCAPES_INTERMEDIATE, // ESC and intermediate bytes: ends with one more byte
    ESCAPES_CSI,          // ESC [ ... up to its final byte
    ESCAPES_STRING,       // ESC ] (or P X ^ _) ... up to BEL or ESC backslash
    ESCAPES_STRING_END,   // ESC within a string
};

#define ESCAPES_SEQUENCE_MAX 64U // longer ones are none that programs use

/* To be zeroed at the start of a text. */
struct escapes {
    enum escapes_state state;
    bool is_return_held;          // dropped if a newline follows, as terminals end lines with both
    char character[4];            // of UTF-8, as far as it has come
    size_t n_character, n_wanted; // bytes of it
    char sequence[ESCAPES_SEQUENCE_MAX];
    size_t n_sequence;
};

/*
 * Appends the text: everything except control sequences, control characters other than tab, newline and
 * return, and characters that change the order of others. Bytes that are no UTF-8 are kept unless a terminal
 * could take them for controls.
 */
void escapes_strip(struct escapes *escapes, const void *bytes, size_t length, struct buffer *out);

/*
 * The same for a program that uses the whole screen: also appends sequences that draw, colour and move the
 * cursor. Removes those that make a terminal do anything else: answer as if its user typed, print, change its
 * title or the clipboard, or accept files.
 */
void escapes_confine(struct escapes *escapes, const void *bytes, size_t length, struct buffer *out);
