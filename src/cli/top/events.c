/* SPDX-License-Identifier: MIT */
/* The lines of https://html.spec.whatwg.org/multipage/server-sent-events.html that mgpud sends: `event`,
 * `data`, and `id`, `retry` and comments, which are ignored. An empty line ends an event. */
#include "cli/top/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *value_of(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0 || line[length] != ':')
        return NULL;
    line += length + 1;
    return *line == ' ' ? line + 1 : line;
}

static void take_line(struct events *events)
{
    const char *line = buffer_text(&events->line), *value = NULL;
    if (*line == '\0') {
        if (events->type[0] != '\0' || events->text.length > 0)
            events->take(events->target, events->type, buffer_text(&events->text));
        events_reset(events);
    } else if ((value = value_of(line, "event")) != NULL) {
        (void)snprintf(events->type, sizeof(events->type), "%s", value);
    } else if ((value = value_of(line, "data")) != NULL) {
        buffer_append_text(&events->text, value);
    }
    events->line.length = 0;
}

int events_add(struct events *events, const void *bytes, size_t length)
{
    const char *p = bytes;
    for (size_t i = 0; i < length; i++) {
        if (p[i] == '\n')
            take_line(events);
        else if (p[i] != '\r')
            buffer_append(&events->line, &p[i], 1);
        if (events->line.length > EVENT_LINE_MAX || events->text.length > EVENT_LINE_MAX)
            return -E2BIG;
    }
    return 0;
}

void events_reset(struct events *events)
{
    events->line.length = events->text.length = 0;
    events->type[0] = '\0';
}

void events_clear(struct events *events)
{
    buffer_clear(&events->line);
    buffer_clear(&events->text);
}
