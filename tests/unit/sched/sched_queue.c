/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static int open_one(void **state)
{
    return fixture_open(state, 1);
}

static void positions_follow_priority_and_then_id(void **state)
{
    struct fixture *f = *state;
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 1 });
    fixture_add(f, 2, 5, (struct sched_request){ .gpus = 1 });
    fixture_add(f, 3, 0, (struct sched_request){ .gpus = 0 });
    fixture_add(f, 4, 0, (struct sched_request){ .gpus = 1 });
    assert_int_equal(queue_position(&f->queue, &f->entries[2]), 1);
    assert_int_equal(queue_position(&f->queue, &f->entries[1]), 2);
    assert_int_equal(queue_position(&f->queue, &f->entries[3]), 3);
    assert_int_equal(queue_position(&f->queue, &f->entries[4]), 4);
}

static void equal_requests_of_one_owner_are_one_class(void **state)
{
    struct fixture *f = *state;
    uint32_t a[] = { 0, 1 }, b[] = { 1, 0 };
    for (uint64_t job = 1; job <= 20; job++)
        fixture_add(f, job, 0, (struct sched_request){ .gpus = 1 });
    assert_int_equal(f->queue.n_classes, 1);
    fixture_add(f, 21, 1, (struct sched_request){ .gpus = 1 });
    fixture_add(f, 22, 0, (struct sched_request){ .gpus = 2, .ids = a, .n_ids = 2 });
    fixture_add(f, 23, 0, (struct sched_request){ .gpus = 2, .ids = b, .n_ids = 2 });
    assert_int_equal(f->queue.n_classes, 4);
    assert_int_equal(f->queue.length, 23);
}

static void an_entry_that_leaves_is_gone_and_may_leave_twice(void **state)
{
    struct fixture *f = *state;
    for (uint64_t job = 1; job <= 3; job++)
        fixture_add(f, job, 0, (struct sched_request){ .gpus = 1 });
    queue_remove(&f->queue, &f->entries[2]);
    queue_remove(&f->queue, &f->entries[2]);
    assert_int_equal(queue_position(&f->queue, &f->entries[2]), 0);
    assert_int_equal(queue_position(&f->queue, &f->entries[3]), 2);
    queue_remove(&f->queue, &f->entries[1]);
    queue_remove(&f->queue, &f->entries[3]);
    assert_int_equal(f->queue.n_classes, 0);
}

static void many_classes_are_all_found_again(void **state)
{
    struct fixture *f = *state;
    static struct queue_entry entries[2000];
    struct sched_request request = { .gpus = 1 };
    for (uint32_t i = 0; i < 2000; i++) {
        request.gpu_mem = GIB + i % 1000;
        queue_add(&f->queue, &entries[i], i + 1, 1000, 0, &request);
    }
    assert_int_equal(f->queue.n_classes, 1000);
    for (uint32_t i = 0; i < 2000; i++)
        queue_remove(&f->queue, &entries[i]);
    assert_int_equal(f->queue.n_classes, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_one, fixture_close)
    const struct CMUnitTest tests[] = {
        CASE(positions_follow_priority_and_then_id),
        CASE(equal_requests_of_one_owner_are_one_class),
        CASE(an_entry_that_leaves_is_gone_and_may_leave_twice),
        CASE(many_classes_are_all_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
