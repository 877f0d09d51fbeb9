/* SPDX-License-Identifier: MIT */
/* A virtual clock, a seeded source of chance, and things that happen later. The same seed gives the same run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world {
    int64_t now_ms;        // since boot
    int64_t wall_ahead_ms; // of that the wall clock, which is set now and then
    uint64_t random_state;
    struct happening *heap;
    size_t count, capacity;
    uint64_t last_order;
    size_t happened;
};

typedef void (*world_fn)(void *arg, uint64_t number, void *object);

struct happening {
    int64_t at_ms;
    uint64_t order; // first come, first served within a millisecond
    world_fn run;
    void *arg;
    uint64_t number;
    void *object;
    void (*drop)(void *object); // frees an object that is never handed over, or NULL
};

void world_init(struct world *world, uint64_t seed);
void world_clear(struct world *world);

int64_t world_wall_ms(const struct world *world);
int64_t world_true_ms(const struct world *world); // of a wall clock that is right
/* Sets the wall clock, so that it is wrong by so much. */
void world_set_clock(struct world *world, int64_t off_ms);

uint64_t world_random(struct world *world);
/* Between `low` and `high`, both included. */
int64_t world_between(struct world *world, int64_t low, int64_t high);
/* True once in `n` times on average. */
bool world_one_in(struct world *world, uint64_t n);

void world_later(struct world *world, int64_t delay_ms, world_fn run, void *arg, uint64_t number,
    void *object, void (*drop)(void *object));

/* Lets the next thing happen; false when nothing is left or it lies beyond `until_ms`. */
bool world_step(struct world *world, int64_t until_ms);
