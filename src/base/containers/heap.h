/* SPDX-License-Identifier: MIT */
/*
 * Moments, the earliest on top; of equal times that with the lowest number. Zeroed memory is an empty heap.
 * Who has to move or take back what is in it uses timers.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct heap_item {
    int64_t at_ms;
    uint32_t number, detail; // the caller's
};

struct heap {
    struct heap_item *items; // the first is the earliest; the others are in no order
    size_t count, room;
};

void heap_push(struct heap *heap, struct heap_item item);
struct heap_item heap_pop(struct heap *heap); // must not be empty
void heap_clear(struct heap *heap);
