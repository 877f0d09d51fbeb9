/* SPDX-License-Identifier: MIT */
/* Parses server-sent events from chunks of any size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

#define EVENT_LINE_MAX (1U << 20)

/* An event with its type ("started", "reset") and the text of its data. */
typedef void (*events_take_fn)(void *target, const char *type, const char *text);

struct events {
    events_take_fn take;
    void *target;
    struct buffer line, text;
    char type[32];
};

/* 0, or -E2BIG for a line longer than mgpud sends. */
int events_add(struct events *events, const void *bytes, size_t length);

/* Discards an incomplete event after a lost connection. */
void events_reset(struct events *events);
void events_clear(struct events *events);
