/* SPDX-License-Identifier: MIT */
/* What happens by itself at some time: a heap whose entries can be moved. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int kind;
    void *owner;
    size_t *place; // in the owner: number of the timer plus 1, 0 while it is not set
};

struct timer_due {
    int64_t at_ms;
    uint64_t order;  // of being set: breaks ties
    uint32_t number; // of the timer
};

struct timers {
    struct timer_due *heap;
    size_t count;
    struct timer *timers; // by number
    uint32_t *at;         // by number: where in the heap; of a free one: the next free one
    uint32_t free;        // the first free one
    size_t capacity;      // of heap, timers and at
    uint64_t last_order;
};

/* Sets or moves the timer of `place`; TIME_NEVER (INT64_MAX) takes it away. */
void timers_set(struct timers *timers, int64_t at_ms, int kind, void *owner, size_t *place);

/* Takes away and gives the earliest one that is due; false when none is. */
bool timers_take(struct timers *timers, int64_t now_ms, int *ret_kind, void **ret_owner);

/* When the earliest is due, INT64_MAX: there is none. */
int64_t timers_next(const struct timers *timers);

/* The owner of one of the `count` timers, in no order; NULL when it is of another kind. */
void *timers_owner(const struct timers *timers, size_t i, int kind);

void timers_free(struct timers *timers); // without a word to the owners, who may be gone
