/* SPDX-License-Identifier: MIT */
/* A binary heap in one array. */
#include "base/containers/heap.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

#define ROOM_FIRST 64U

static bool is_before(const struct heap_item *a, const struct heap_item *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

void heap_push(struct heap *heap, struct heap_item item)
{
    if (heap->count == heap->room) {
        heap->room = heap->room == 0 ? ROOM_FIRST : heap->room * 2;
        heap->items = xreallocarray(heap->items, heap->room, sizeof(*heap->items));
    }
    size_t at = heap->count++;
    for (; at > 0 && is_before(&item, &heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
}

struct heap_item heap_pop(struct heap *heap)
{
    struct heap_item top = heap->items[0], last = heap->items[--heap->count];
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
    heap->items[at] = last;
    return top;
}

void heap_clear(struct heap *heap)
{
    free(heap->items);
    *heap = (struct heap){ 0 };
}
