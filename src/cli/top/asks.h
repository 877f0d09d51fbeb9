/* SPDX-License-Identifier: MIT */
/* The requests of `mgpu top`: a table; requests are sent one after the other on one connection. */
#pragma once

#include "cli/top/top.h"

struct top_ask {
    int64_t every_ms;                         // minimum interval; 0: only after top_poke()
    bool (*is_wanted)(const struct top *top); // NULL: always
    const char *request;                      // its path, if that is always the same
    char *(*path)(struct top *top);           // else a function of it, as top_ask_path()
    void (*take)(struct top *top, json_t *answer);
    void (*refuse)(struct top *top); // not found, or permission denied; may be NULL
};

extern const struct top_ask top_asks[ASKS];

/* NULL if there is nothing to request; the caller frees it. */
char *top_ask_path(struct top *top, enum top_ask_id ask);

/* Sends the request as soon as is_wanted allows. */
void top_poke(struct top *top, enum top_ask_id ask);

/* When the request is due, on the boot clock; INT64_MAX: only after top_poke(). */
int64_t top_ask_due(const struct top *top, enum top_ask_id ask);

/* Called when mgpud has just been reached: sends all requests again. */
void top_asks_begin(struct top *top);

/* Handles a change reported by /events. */
void top_asks_event(struct top *top, const char *type, const char *text);
