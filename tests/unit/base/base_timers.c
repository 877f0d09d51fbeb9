/* SPDX-License-Identifier: MIT */
/* The heap of timers against a plain list. */
#include <stdlib.h>

#include "base/containers/timers.h"
#include "unit_test.h"

#define OWNERS 200

struct owner {
    int64_t at_ms; // INT64_MAX: not set
    uint64_t order;
    size_t place;
};

static uint64_t random_state;

static uint32_t chance(uint32_t below)
{
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(random_state >> 33) % below;
}

static struct owner *earliest(struct owner *owners)
{
    struct owner *first = NULL;
    for (size_t i = 0; i < OWNERS; i++)
        if (owners[i].at_ms < INT64_MAX &&
            (first == NULL || owners[i].at_ms < first->at_ms ||
                (owners[i].at_ms == first->at_ms && owners[i].order < first->order)))
            first = &owners[i];
    return first;
}

static void take_one(struct timers *timers, struct owner *owners, int64_t now_ms)
{
    int kind = 0;
    void *owner = NULL;
    struct owner *first = earliest(owners);
    bool is_due = first != NULL && first->at_ms <= now_ms;
    assert_int_equal(timers_take(timers, now_ms, &kind, &owner), is_due);
    if (!is_due)
        return;
    assert_ptr_equal(owner, first);
    assert_int_equal(kind, (int)(first - owners) % 7);
    assert_int_equal(first->place, 0);
    first->at_ms = INT64_MAX;
}

TEST(timers_come_in_order_of_time_and_of_being_set)
{
    for (random_state = 1; random_state < 40; random_state++) {
        uint64_t seed = random_state, order = 0;
        struct owner owners[OWNERS];
        struct timers timers = { 0 };
        for (size_t i = 0; i < OWNERS; i++)
            owners[i] = (struct owner){ .at_ms = INT64_MAX };
        for (int step = 0; step < 2000; step++) {
            struct owner *owner = &owners[chance(OWNERS)];
            if (chance(4) == 0) {
                take_one(&timers, owners, chance(100));
                continue;
            }
            owner->at_ms = chance(5) == 0 ? INT64_MAX : chance(100);
            owner->order = ++order;
            timers_set(&timers, owner->at_ms, (int)(owner - owners) % 7, owner, &owner->place);
            assert_int_equal(owner->place != 0, owner->at_ms < INT64_MAX);
            const struct owner *first = earliest(owners);
            assert_int_equal(timers_next(&timers), first != NULL ? first->at_ms : INT64_MAX);
        }
        timers_free(&timers);
        random_state = seed;
    }
}
