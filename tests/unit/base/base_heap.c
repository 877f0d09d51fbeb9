/* SPDX-License-Identifier: MIT */
#include "base/containers/heap.h"
#include "unit_test.h"

#define COUNT 1000

TEST(moments_come_by_time_and_then_by_number)
{
    struct heap heap = { 0 };
    uint32_t random = 1;
    for (uint32_t i = 0; i < COUNT; i++) {
        random = random * 1664525U + 1013904223U;
        struct heap_item event = { .at_ms = random >> 24, .number = i };
        heap_push(&heap, event);
    }
    struct heap_item before = heap.items[0];
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct heap_item first = heap_pop(&heap);
        assert_true(
            first.at_ms > before.at_ms || (first.at_ms == before.at_ms && first.number >= before.number));
        before = first;
    }
    assert_int_equal(heap.count, 0);
    heap_clear(&heap);
}
