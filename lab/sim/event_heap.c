/* SPDX-License-Identifier: MIT */
/* A binary heap in one array. */
#include "lab/sim/event_heap.h"

#include "base/memory.h"

static bool is_before(const struct heap_event *a, const struct heap_event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->job < b->job;
}

void event_heap_push(struct event_heap *heap, const struct heap_event *event)
{
    if (heap->count == heap->room) {
        heap->room = heap->room == 0 ? 64 : heap->room * 2;
        heap->items = xreallocarray(heap->items, heap->room, sizeof(*heap->items));
    }
    size_t at = heap->count++;
    for (; at > 0 && is_before(event, &heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = *event;
}

void event_heap_pop(struct event_heap *heap)
{
    struct heap_event last = heap->items[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap->count && is_before(&heap->items[child + 1], &heap->items[child]))
            child++;
        if (child >= heap->count || !is_before(&heap->items[child], &last))
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    if (heap->count > 0)
        heap->items[at] = last;
}

void event_heap_clear(struct event_heap *heap)
{
    free(heap->items);
    *heap = (struct event_heap){ 0 };
}
