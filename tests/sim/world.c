/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdlib.h>

#include "base/memory.h"

#define WALL_AHEAD_MS (100 * 3600 * 1000LL) // of the boot clock, while it is right

void world_init(struct world *world, uint64_t seed)
{
    *world = (struct world){ .now_ms = 1000000, .wall_ahead_ms = WALL_AHEAD_MS, .random_state = seed };
    world->random_state = world_random(world); // else the next seed has the same numbers, one later
}

void world_clear(struct world *world)
{
    for (size_t i = 0; i < world->count; i++)
        if (world->heap[i].drop != NULL)
            world->heap[i].drop(world->heap[i].object);
    free(world->heap);
    *world = (struct world){ 0 };
}

int64_t world_wall_ms(const struct world *world)
{
    return world->now_ms + world->wall_ahead_ms;
}

int64_t world_true_ms(const struct world *world)
{
    return world->now_ms + WALL_AHEAD_MS;
}

void world_set_clock(struct world *world, int64_t off_ms)
{
    world->wall_ahead_ms = WALL_AHEAD_MS + off_ms;
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t world_random(struct world *world)
{
    uint64_t z = world->random_state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

int64_t world_between(struct world *world, int64_t low, int64_t high)
{
    return low + (int64_t)(world_random(world) % (uint64_t)(high - low + 1));
}

bool world_one_in(struct world *world, uint64_t n)
{
    return world_random(world) % n == 0;
}

static bool is_before(const struct happening *a, const struct happening *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void swap(struct happening *a, struct happening *b)
{
    struct happening saved = *a;
    *a = *b;
    *b = saved;
}

void world_later(struct world *world, int64_t delay_ms, world_fn run, void *arg, uint64_t number,
    void *object, void (*drop)(void *object))
{
    if (world->count == world->capacity) {
        world->capacity = world->capacity == 0 ? 256 : world->capacity * 2;
        world->heap = xreallocarray(world->heap, world->capacity, sizeof(struct happening));
    }
    size_t at = world->count++;
    world->heap[at] =
        (struct happening){ world->now_ms + delay_ms, ++world->last_order, run, arg, number, object, drop };
    while (at > 0 && is_before(&world->heap[at], &world->heap[(at - 1) / 2])) {
        swap(&world->heap[at], &world->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

bool world_step(struct world *world, int64_t until_ms)
{
    if (world->count == 0 || world->heap[0].at_ms > until_ms)
        return false;
    struct happening next = world->heap[0];
    world->heap[0] = world->heap[--world->count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < world->count && is_before(&world->heap[child], &world->heap[least]))
                least = child;
        if (least == at)
            break;
        swap(&world->heap[at], &world->heap[least]);
        at = least;
    }
    world->now_ms = next.at_ms;
    world->happened++;
    next.run(next.arg, next.number, next.object);
    return true;
}
