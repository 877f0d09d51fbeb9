/* SPDX-License-Identifier: MIT */
/* What `mgpu top` asks mgpud for: one table, a request after the other on one connection. */
#pragma once

#include "cli/top/top.h"

struct top_ask {
    int64_t every_ms;                         // at the soonest; 0: only when it is poked
    bool (*is_wanted)(const struct top *top); // NULL: always
    char *(*path)(struct top *top);           // NULL when there is nothing to ask; the caller frees it
    void (*take)(struct top *top, json_t *answer);
    void (*refuse)(struct top *top); // the thing is not there, or not for us; or NULL
};

extern const struct top_ask top_asks[ASKS];

/* Asks for it as soon as it is wanted. */
void top_poke(struct top *top, enum top_ask_id ask);

/* When the row is due, on the boot clock; INT64_MAX: not by itself. */
int64_t top_ask_due(const struct top *top, enum top_ask_id ask);

/* Everything is told anew: mgpud has just been reached. */
void top_asks_begin(struct top *top);

/* A change that /events told. */
void top_asks_event(struct top *top, const char *type, const char *text);
