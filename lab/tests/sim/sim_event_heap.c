/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lab/sim/event_heap.h"

#define COUNT 1000

static void events_come_by_time_and_then_by_job(void **state)
{
    struct event_heap heap = { 0 };
    uint32_t random = 1;
    for (uint32_t i = 0; i < COUNT; i++) {
        random = random * 1664525U + 1013904223U;
        struct heap_event event = { .at_ms = random >> 24, .job = i };
        event_heap_push(&heap, &event);
    }
    struct heap_event before = heap.items[0];
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct heap_event first = heap.items[0];
        assert_true(first.at_ms > before.at_ms || (first.at_ms == before.at_ms && first.job >= before.job));
        before = first;
        event_heap_pop(&heap);
    }
    assert_int_equal(heap.count, 0);
    event_heap_clear(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_by_time_and_then_by_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
