/* SPDX-License-Identifier: MIT */
/* A carriage return starts the line again, as on a terminal: only the last state of a progress bar is
 * kept. */
#include "cli/top/tail.h"

#include <stdlib.h>

#include "base/memory.h"

#define TAB_STOP 8

static void finish_line(struct tail *tail)
{
    char *line = buffer_take(&tail->open);
    if (tail->lines == NULL)
        tail->lines = xcalloc(TAIL_LINES, sizeof(char *));
    size_t place = (tail->first + tail->count) % TAIL_LINES;
    if (tail->count == TAIL_LINES) {
        free(tail->lines[place]);
        tail->first = (tail->first + 1) % TAIL_LINES;
    } else {
        tail->count++;
    }
    tail->lines[place] = line;
}

static void add_byte(struct tail *tail, char byte)
{
    if (byte == '\n') {
        finish_line(tail);
    } else if (byte == '\r') {
        tail->open.length = 0;
    } else if (byte == '\t') {
        do
            buffer_append(&tail->open, " ", 1);
        while (tail->open.length % TAB_STOP != 0);
    } else if (tail->open.length < TAIL_LINE_BYTES) {
        buffer_append(&tail->open, &byte, 1);
    }
}

void tail_add(struct tail *tail, const void *bytes, size_t length)
{
    _cleanup_buffer_ struct buffer plain = { 0 };
    escapes_strip(&tail->escapes, bytes, length, &plain);
    for (size_t i = 0; i < plain.length; i++)
        add_byte(tail, (char)plain.bytes[i]);
}

void tail_end_line(struct tail *tail)
{
    if (tail->open.length > 0)
        finish_line(tail);
}

size_t tail_count(const struct tail *tail)
{
    return tail->count + (tail->open.length > 0 ? 1 : 0);
}

const char *tail_line(struct tail *tail, size_t i)
{
    return i < tail->count ? tail->lines[(tail->first + i) % TAIL_LINES] : buffer_text(&tail->open);
}

void tail_clear(struct tail *tail)
{
    for (size_t i = 0; i < tail->count; i++)
        free(tail->lines[(tail->first + i) % TAIL_LINES]);
    free(tail->lines);
    buffer_clear(&tail->open);
    *tail = (struct tail){ 0 };
}
