/* SPDX-License-Identifier: MIT */
/*
 * A heap with four children per node. It contains only times and numbers; owner and position of a timer are
 * stored by number separately, so that moving entries touches little memory: with one timer for each of many
 * running jobs most of the cost is cache misses.
 */
#include "base/containers/timers.h"

#include <stdlib.h>

#include "base/memory.h"

#define CHILDREN       4U
#define CAPACITY_FIRST 16U

static bool is_before(const struct timer_due *a, const struct timer_due *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void put(struct timers *timers, size_t at, struct timer_due due)
{
    timers->heap[at] = due;
    timers->at[due.number] = (uint32_t)at;
}

static void sift_up(struct timers *timers, size_t at, struct timer_due due)
{
    while (at > 0 && is_before(&due, &timers->heap[(at - 1) / CHILDREN])) {
        put(timers, at, timers->heap[(at - 1) / CHILDREN]);
        at = (at - 1) / CHILDREN;
    }
    put(timers, at, due);
}

static void sift_down(struct timers *timers, size_t at, struct timer_due due)
{
    for (;;) {
        size_t first = CHILDREN * at + 1, last = first + CHILDREN;
        if (first >= timers->count)
            break;
        size_t best = first;
        for (size_t child = first + 1; child < last && child < timers->count; child++)
            if (is_before(&timers->heap[child], &timers->heap[best]))
                best = child;
        if (!is_before(&timers->heap[best], &due))
            break;
        put(timers, at, timers->heap[best]);
        at = best;
    }
    put(timers, at, due);
}

static void sift(struct timers *timers, size_t at, struct timer_due due)
{
    if (at > 0 && is_before(&due, &timers->heap[(at - 1) / CHILDREN]))
        sift_up(timers, at, due);
    else
        sift_down(timers, at, due);
}

static void take_away(struct timers *timers, uint32_t number)
{
    size_t at = timers->at[number];
    struct timer_due last = timers->heap[--timers->count];
    if (at < timers->count)
        sift(timers, at, last);
    *timers->timers[number].place = 0;
    timers->at[number] = timers->free;
    timers->free = number;
}

static void grow(struct timers *timers)
{
    size_t old = timers->capacity, capacity = old > 0 ? old * 2 : CAPACITY_FIRST;
    timers->heap = xreallocarray(timers->heap, capacity, sizeof(*timers->heap));
    timers->timers = xreallocarray(timers->timers, capacity, sizeof(*timers->timers));
    timers->at = xreallocarray(timers->at, capacity, sizeof(*timers->at));
    for (size_t i = old; i < capacity; i++)
        timers->at[i] = (uint32_t)i + 1;
    timers->free = (uint32_t)old;
    timers->capacity = capacity;
}

void timers_set(struct timers *timers, int64_t at_ms, int kind, void *owner, size_t *place)
{
    if (*place != 0 && at_ms != INT64_MAX) {
        uint32_t number = (uint32_t)(*place - 1);
        timers->timers[number] = (struct timer){ kind, owner, place };
        sift(timers, timers->at[number], (struct timer_due){ at_ms, ++timers->last_order, number });
        return;
    }
    if (*place != 0)
        take_away(timers, (uint32_t)(*place - 1));
    if (at_ms == INT64_MAX)
        return;
    if (timers->count == timers->capacity)
        grow(timers);
    uint32_t number = timers->free;
    timers->free = timers->at[number];
    timers->timers[number] = (struct timer){ kind, owner, place };
    *place = (size_t)number + 1;
    sift_up(timers, timers->count++, (struct timer_due){ at_ms, ++timers->last_order, number });
}

bool timers_take(struct timers *timers, int64_t now_ms, int *ret_kind, void **ret_owner)
{
    if (timers->count == 0 || timers->heap[0].at_ms > now_ms)
        return false;
    uint32_t number = timers->heap[0].number;
    *ret_kind = timers->timers[number].kind;
    *ret_owner = timers->timers[number].owner;
    take_away(timers, number);
    return true;
}

int64_t timers_next(const struct timers *timers)
{
    return timers->count > 0 ? timers->heap[0].at_ms : INT64_MAX;
}

void *timers_first(const struct timers *timers)
{
    return timers->count > 0 ? timers->timers[timers->heap[0].number].owner : NULL;
}

int64_t timers_at(const struct timers *timers, size_t place)
{
    return place > 0 ? timers->heap[timers->at[place - 1]].at_ms : INT64_MAX;
}

void *timers_owner(const struct timers *timers, size_t i, int kind)
{
    const struct timer *timer = &timers->timers[timers->heap[i].number];
    return timer->kind == kind ? timer->owner : NULL;
}

void timers_free(struct timers *timers)
{
    free(timers->heap);
    free(timers->timers);
    free(timers->at);
    *timers = (struct timers){ 0 };
}
