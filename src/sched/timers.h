/* SPDX-License-Identifier: MIT */
/* What happens by itself at some time: a binary heap whose entries know their places, so that they can be
 * moved. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int64_t at_ms;
    uint64_t order; // of being set: breaks ties
    int kind;
    void *owner;
    size_t *place; // in the owner: index in the heap plus 1, 0 while it is not set
};

struct timers {
    struct timer *heap;
    size_t count, capacity;
    uint64_t last_order;
};

/* Sets or moves the timer of `place`; TIME_NEVER (INT64_MAX) takes it away. */
void timers_set(struct timers *timers, int64_t at_ms, int kind, void *owner, size_t *place);

/* Takes away and gives the earliest one that is due; false when none is. */
bool timers_take(struct timers *timers, int64_t now_ms, int *ret_kind, void **ret_owner);

/* When the earliest is due, INT64_MAX: there is none. */
int64_t timers_next(const struct timers *timers);

void timers_clear(struct timers *timers);
