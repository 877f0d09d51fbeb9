/* SPDX-License-Identifier: MIT */
/*
 * Times, the earliest on top; among equal times, the lowest number. Zeroed memory is an empty heap. timers.h
 * has entries that can be moved or removed.
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
