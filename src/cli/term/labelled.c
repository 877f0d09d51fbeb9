/* SPDX-License-Identifier: MIT */
#include "cli/term/labelled.h"

#include <stdbool.h>
#include <string.h>

#define LINE_BYTES_MAX (64U << 10) // longer lines are split there

int labelled_flush(struct labelled *out)
{
    struct buffer text = { 0 };
    if (out->line.length == 0)
        return 0;
    buffer_printf(&text, "%s: ", out->label);
    buffer_append(&text, out->line.bytes, out->line.length);
    if (text.bytes[text.length - 1] != '\n')
        buffer_append(&text, "\n", 1);
    out->line.length = 0;
    int r = out->put(out->arg, text.bytes, text.length);
    buffer_clear(&text);
    return r;
}

int labelled_take(struct labelled *out, const void *data, size_t length)
{
    const uint8_t *bytes = data;
    while (length > 0) {
        const uint8_t *newline = memchr(bytes, '\n', length);
        size_t part = newline == NULL ? length : (size_t)(newline - bytes) + 1;
        size_t room = LINE_BYTES_MAX - out->line.length;
        part = part < room ? part : room;
        buffer_append(&out->line, bytes, part);
        bytes += part;
        length -= part;
        bool is_due = out->line.bytes[out->line.length - 1] == '\n' || out->line.length == LINE_BYTES_MAX;
        int r = is_due ? labelled_flush(out) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

void labelled_clear(struct labelled *out)
{
    buffer_clear(&out->line);
}
