/* SPDX-License-Identifier: MIT */
/*
 * The first 64 classes are one millisecond each. Above, each power of two has 32 classes of equal width, so
 * the middle of a class is at most 1/64 off. The last class, which begins beyond 30 years, includes
 * everything above.
 */
#include "store/wait_sketch.h"

#define EXACT_BITS 6
#define EXACT      (1U << EXACT_BITS)
#define PARTS_BITS 5
#define PARTS      (1U << PARTS_BITS)

static unsigned class_of(uint64_t ms)
{
    if (ms < EXACT)
        return (unsigned)ms;
    unsigned power = 63 - (unsigned)__builtin_clzll(ms);
    unsigned part = (unsigned)(ms >> (power - PARTS_BITS)) & (PARTS - 1);
    unsigned found = EXACT + (power - EXACT_BITS) * PARTS + part;
    return found < SKETCH_CLASSES ? found : SKETCH_CLASSES - 1;
}

static int64_t middle_of(unsigned class)
{
    if (class < EXACT)
        return class;
    unsigned power = EXACT_BITS + (class - EXACT) / PARTS, part = (class - EXACT) % PARTS;
    uint64_t width = UINT64_C(1) << (power - PARTS_BITS);
    return (int64_t)((PARTS + part) * width + width / 2);
}

void wait_sketch_add(struct wait_sketch *sketch, int64_t ms)
{
    sketch->count++;
    sketch->classes[class_of(ms > 0 ? (uint64_t)ms : 0)]++;
}

int64_t wait_sketch_quantile(const struct wait_sketch *sketch, unsigned percent)
{
    uint64_t wanted = (sketch->count * percent + 99) / 100, seen = 0;
    if (sketch->count == 0)
        return 0;
    for (unsigned i = 0; i < SKETCH_CLASSES; i++) {
        seen += sketch->classes[i];
        if (seen >= wanted)
            return middle_of(i);
    }
    return middle_of(SKETCH_CLASSES - 1);
}
