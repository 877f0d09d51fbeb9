/* SPDX-License-Identifier: MIT */
#include "sched/timers.h"

#include <stdlib.h>

#include "base/memory.h"

static bool is_before(const struct timer *a, const struct timer *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void put(struct timers *timers, size_t at, struct timer timer)
{
    timers->heap[at] = timer;
    *timer.place = at + 1;
}

static void sift_up(struct timers *timers, size_t at, struct timer timer)
{
    while (at > 0 && is_before(&timer, &timers->heap[(at - 1) / 2])) {
        put(timers, at, timers->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(timers, at, timer);
}

static void sift_down(struct timers *timers, size_t at, struct timer timer)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count && is_before(&timers->heap[child + 1], &timers->heap[child]))
            child++;
        if (!is_before(&timers->heap[child], &timer))
            break;
        put(timers, at, timers->heap[child]);
        at = child;
    }
    put(timers, at, timer);
}

static void take_away(struct timers *timers, size_t at)
{
    *timers->heap[at].place = 0;
    struct timer last = timers->heap[--timers->count];
    if (at == timers->count)
        return;
    if (at > 0 && is_before(&last, &timers->heap[(at - 1) / 2]))
        sift_up(timers, at, last);
    else
        sift_down(timers, at, last);
}

void timers_set(struct timers *timers, int64_t at_ms, int kind, void *owner, size_t *place)
{
    if (*place != 0)
        take_away(timers, *place - 1);
    if (at_ms == INT64_MAX)
        return;
    if (timers->count == timers->capacity) {
        timers->capacity = timers->capacity > 0 ? timers->capacity * 2 : 16;
        timers->heap = xreallocarray(timers->heap, timers->capacity, sizeof(*timers->heap));
    }
    struct timer timer = { at_ms, ++timers->last_order, kind, owner, place };
    sift_up(timers, timers->count++, timer);
}

bool timers_take(struct timers *timers, int64_t now_ms, int *ret_kind, void **ret_owner)
{
    if (timers->count == 0 || timers->heap[0].at_ms > now_ms)
        return false;
    *ret_kind = timers->heap[0].kind;
    *ret_owner = timers->heap[0].owner;
    take_away(timers, 0);
    return true;
}

int64_t timers_next(const struct timers *timers)
{
    return timers->count > 0 ? timers->heap[0].at_ms : INT64_MAX;
}

void timers_clear(struct timers *timers)
{
    for (size_t i = 0; i < timers->count; i++)
        *timers->heap[i].place = 0;
    free(timers->heap);
    *timers = (struct timers){ 0 };
}
