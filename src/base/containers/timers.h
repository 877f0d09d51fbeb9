/* SPDX-License-Identifier: MIT */
/* Timers: a heap whose entries can be moved. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int kind;
    void *owner;
    size_t *place; // in the owner: number of the timer plus 1, 0 if not set
};

struct timer_due {
    int64_t at_ms;
    uint64_t order;  // order of setting: breaks ties
    uint32_t number; // of the timer
};

struct timers {
    struct timer_due *heap;
    size_t count;
    struct timer *timers; // by number
    uint32_t *at;         // by number: position in the heap; of an unused one: the next unused one
    uint32_t free;        // the first unused one
    size_t capacity;      // capacity of heap, timers and at
    uint64_t last_order;
};

/* Sets or moves the timer of `place`; TIME_NEVER (INT64_MAX) removes it. */
void timers_set(struct timers *timers, int64_t at_ms, int kind, void *owner, size_t *place);

/* Removes and returns the earliest timer that is due; false if none is. */
bool timers_take(struct timers *timers, int64_t now_ms, int *ret_kind, void **ret_owner);

/* Time of the earliest one, INT64_MAX: none. */
int64_t timers_next(const struct timers *timers);

/* Its owner, NULL: there is none. */
void *timers_first(const struct timers *timers);

/* The time of the timer with this place; INT64_MAX: it is not set. */
int64_t timers_at(const struct timers *timers, size_t place);

/* The owner of timer number `i` of `count`, in no particular order; NULL if it is of another kind. */
void *timers_owner(const struct timers *timers, size_t i, int kind);

void timers_free(struct timers *timers); // does not access the owners, which may be freed
