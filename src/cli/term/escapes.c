/* SPDX-License-Identifier: MIT */
/*
 * The shapes of ECMA-48, section 5: ESC Fe, CSI (parameters, then a final byte 0x40 to 0x7e) and the control
 * strings, which end with ST or, as terminals accept, with BEL.
 */
#include "cli/term/escapes.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ESC 0x1b
#define BEL 0x07

static bool is_kept(uint8_t byte)
{
    return (byte >= 0x20 && byte != 0x7f) || byte == '\t' || byte == '\n' || byte == '\r';
}

static enum escapes_state after_escape(uint8_t byte)
{
    if (byte == '[')
        return ESCAPES_CSI;
    if (byte != 0 && strchr("]PX^_", byte) != NULL)
        return ESCAPES_STRING;
    return byte >= 0x20 && byte <= 0x2f ? ESCAPES_INTERMEDIATE : ESCAPES_TEXT;
}

static enum escapes_state next(enum escapes_state state, uint8_t byte)
{
    if (byte == ESC)
        return state == ESCAPES_STRING ? ESCAPES_STRING_END : ESCAPES_START;
    switch (state) {
    case ESCAPES_TEXT: return ESCAPES_TEXT;
    case ESCAPES_START: return after_escape(byte);
    case ESCAPES_INTERMEDIATE: return byte >= 0x20 && byte <= 0x2f ? ESCAPES_INTERMEDIATE : ESCAPES_TEXT;
    case ESCAPES_CSI: return byte >= 0x40 && byte <= 0x7e ? ESCAPES_TEXT : ESCAPES_CSI;
    case ESCAPES_STRING: return byte == BEL ? ESCAPES_TEXT : ESCAPES_STRING;
    case ESCAPES_STRING_END: return byte == '\\' ? ESCAPES_TEXT : after_escape(byte);
    }
    return ESCAPES_TEXT;
}

void escapes_strip(struct escapes *escapes, const void *bytes, size_t length, struct buffer *out)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < length; i++) {
        enum escapes_state before = escapes->state;
        escapes->state = next(before, p[i]);
        if (before != ESCAPES_TEXT || escapes->state != ESCAPES_TEXT || !is_kept(p[i]))
            continue;
        if (escapes->is_return_held && p[i] != '\n')
            buffer_append(out, "\r", 1);
        escapes->is_return_held = p[i] == '\r';
        if (!escapes->is_return_held)
            buffer_append(out, &p[i], 1);
    }
}
