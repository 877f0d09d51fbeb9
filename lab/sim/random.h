/* SPDX-License-Identifier: MIT */
/* Random numbers from a seed, the same on every machine (SplitMix64: Steele, Lea and Flood, OOPSLA 2014). */
#pragma once

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return z ^ z >> 31;
}

/* Within [0, limit); limit at least 1. */
static inline uint64_t random_below(struct random *random, uint64_t limit)
{
    return random_next(random) % limit;
}

/* Within [0, 1). */
static inline double random_part(struct random *random)
{
    return (double)(random_next(random) >> 11) / 9007199254740992.0;
}
