/* SPDX-License-Identifier: MIT */
/*
 * The shapes of ECMA-48, section 5: ESC Fe, CSI (parameters, then a final byte 0x40 to 0x7e) and the control
 * strings, which end with ST or, as terminals accept, with BEL.
 */
#include "cli/term/escapes.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/strings.h"

#define ESC 0x1b
#define BEL 0x07

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

/* --- text --- */

/* The length of a UTF-8 character that begins with this byte; 1: none does. */
static size_t character_length(uint8_t byte)
{
    if (byte < 0xc2 || byte > 0xf4)
        return 1;
    return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* Bytes that are not UTF-8; 0x80 to 0x9f are controls for terminals that do not use it. */
static void keep_bytes(const char *bytes, size_t length, struct buffer *out)
{
    for (size_t i = 0; i < length; i++)
        if ((uint8_t)bytes[i] >= 0xa0)
            buffer_append(out, &bytes[i], 1);
}

static void end_character(struct escapes *escapes, struct buffer *out)
{
    if (escapes->n_character < escapes->n_wanted)
        keep_bytes(escapes->character, escapes->n_character, out);
    else if (text_is_shown(escapes->character, escapes->n_character))
        buffer_append(out, escapes->character, escapes->n_character);
    escapes->n_character = escapes->n_wanted = 0;
}

/* A byte of 0x20 or higher. */
static void keep(struct escapes *escapes, uint8_t byte, struct buffer *out)
{
    bool is_continued = escapes->n_character > 0 && (byte & 0xc0) == 0x80;
    if (escapes->n_character > 0 && !is_continued)
        end_character(escapes, out);
    size_t length = is_continued ? escapes->n_wanted : character_length(byte);
    if (length == 1) {
        if (byte < 0x7f || byte >= 0xa0)
            buffer_append(out, &byte, 1);
        return;
    }
    escapes->n_wanted = length;
    escapes->character[escapes->n_character++] = (char)byte;
    if (escapes->n_character == length)
        end_character(escapes, out);
}

void escapes_strip(struct escapes *escapes, const void *bytes, size_t length, struct buffer *out)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < length; i++) {
        enum escapes_state before = escapes->state;
        escapes->state = next(before, p[i]);
        bool is_text = before == ESCAPES_TEXT && escapes->state == ESCAPES_TEXT;
        bool is_layout = p[i] == '\t' || p[i] == '\n' || p[i] == '\r';
        if (!is_text || (p[i] < 0x20 && !is_layout))
            continue;
        if (escapes->is_return_held && p[i] != '\n')
            buffer_append(out, "\r", 1);
        escapes->is_return_held = p[i] == '\r';
        if (p[i] >= 0x20) {
            keep(escapes, p[i], out);
            continue;
        }
        end_character(escapes, out);
        if (!escapes->is_return_held)
            buffer_append(out, &p[i], 1);
    }
}

/* --- screens --- */

/*
 * Control sequences that only draw, by their last byte. The text between the bracket and that byte begins
 * with one of `prefixes` (space: a digit or nothing), and its intermediate byte is `intermediate` (0: none).
 */
static const struct {
    const char *finals, *prefixes;
    char intermediate;
} drawing[] = {
    { "@ABCDEFGHIJKLMPSTXZ`abdefgmrsu", " ", 0 }, { "hl", " ?", 0 }, { "JK", "?", 0 },
    { "q", " ", ' ' }, // the shape of the cursor
    { "p", " ", '!' }, // soft reset
};

static bool is_drawing_csi(const char *sequence, size_t length)
{
    char final = sequence[length - 1], first = sequence[2], intermediate = 0;
    char prefix = length > 3 && first >= 0x3c && first <= 0x3f ? first : ' ';
    for (size_t i = 2; i + 1 < length; i++) {
        if (sequence[i] >= 0x20 && sequence[i] <= 0x2f && intermediate != 0)
            return false;
        if (sequence[i] >= 0x20 && sequence[i] <= 0x2f)
            intermediate = sequence[i];
        else if ((uint8_t)sequence[i] < 0x20 || (uint8_t)sequence[i] > 0x3f)
            return false;
    }
    for (size_t i = 0; i < sizeof(drawing) / sizeof(drawing[0]); i++)
        if (strchr(drawing[i].finals, final) != NULL && strchr(drawing[i].prefixes, prefix) != NULL &&
            drawing[i].intermediate == intermediate)
            return true;
    return false;
}

/* ESC and one byte, or with a character set in between. */
static bool is_drawing_escape(const char *sequence, size_t length)
{
    if (length == 2)
        return strchr("78DEHM=>", sequence[1]) != NULL;
    return length == 3 && strchr("()*+#", sequence[1]) != NULL && (uint8_t)sequence[2] >= 0x30 &&
           (uint8_t)sequence[2] < 0x7f;
}

static void end_sequence(struct escapes *escapes, struct buffer *out)
{
    const char *sequence = escapes->sequence;
    size_t length = escapes->n_sequence;
    bool is_csi = length > 2 && sequence[1] == '[';
    if (length >= 2 && length < ESCAPES_SEQUENCE_MAX &&
        (is_csi ? is_drawing_csi(sequence, length) : is_drawing_escape(sequence, length)))
        buffer_append(out, sequence, length);
    escapes->n_sequence = 0;
}

void escapes_confine(struct escapes *escapes, const void *bytes, size_t length, struct buffer *out)
{
    static const char controls[] = "\a\b\t\n\v\f\r\016\017";
    const uint8_t *p = bytes;
    for (size_t i = 0; i < length; i++) {
        enum escapes_state before = escapes->state;
        escapes->state = next(before, p[i]);
        bool is_string = before == ESCAPES_STRING || before == ESCAPES_STRING_END;
        if (before == ESCAPES_TEXT && escapes->state == ESCAPES_TEXT) {
            if (p[i] >= 0x20) {
                keep(escapes, p[i], out);
                continue;
            }
            end_character(escapes, out);
            if (p[i] != 0 && strchr(controls, p[i]) != NULL)
                buffer_append(out, &p[i], 1);
            continue;
        }
        if (p[i] == ESC) {
            end_character(escapes, out);
            escapes->n_sequence = 0;
        }
        if (escapes->n_sequence < ESCAPES_SEQUENCE_MAX)
            escapes->sequence[escapes->n_sequence++] = (char)p[i];
        if (escapes->state != ESCAPES_TEXT)
            continue;
        if (is_string)
            escapes->n_sequence = 0;
        end_sequence(escapes, out);
    }
}
