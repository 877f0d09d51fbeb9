/* SPDX-License-Identifier: MIT */
/* End times of running jobs, soonest first; equal times by job number. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_event {
    int64_t at_ms;
    uint32_t job;
    uint32_t attempt;
};

struct event_heap {
    struct heap_event *items;
    size_t count, room;
};

void event_heap_push(struct event_heap *heap, const struct heap_event *event);
void event_heap_pop(struct event_heap *heap); // must not be empty
void event_heap_clear(struct event_heap *heap);
