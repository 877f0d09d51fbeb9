/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <string.h>

static int open_four(void **state)
{
    return fixture_open(state, 4);
}

static void higher_priority_starts_first_then_the_older_job(void **state)
{
    struct fixture *f = *state;
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 2 });
    fixture_add(f, 2, 5, (struct sched_request){ .gpus = 1 });
    fixture_add(f, 3, 0, (struct sched_request){ .gpus = 1 });
    fixture_add(f, 4, 0, (struct sched_request){ .gpus = 1 });
    fixture_pass(f);
    assert_started(f, 3, 2, 1, 3);
    fixture_end(f, 2);
    fixture_pass(f);
    assert_started(f, 4, 2, 1, 3, 4);
}

static void a_wide_job_gathers_its_gpus_and_is_not_passed(void **state)
{
    struct fixture *f = *state;
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 1 });
    fixture_add(f, 2, 0, (struct sched_request){ .gpus = 4 });
    fixture_add(f, 3, 0, (struct sched_request){ .gpus = 1 });
    fixture_pass(f);
    assert_started(f, 1, 1);
    fixture_end(f, 1);
    fixture_pass(f);
    assert_started(f, 2, 1, 2);
}

static void a_job_that_waits_for_one_gpu_does_not_hold_up_the_others(void **state)
{
    struct fixture *f = *state;
    uint32_t zero[] = { 0 };
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 1, .ids = zero, .n_ids = 1 });
    fixture_add(f, 2, 0, (struct sched_request){ .gpus = 1, .ids = zero, .n_ids = 1 });
    fixture_add(f, 3, 0, (struct sched_request){ .gpus = 2 });
    fixture_pass(f);
    assert_started(f, 2, 1, 3);
    assert_int_equal(fixture_gpu(f, 3, 0), 1);
    assert_int_equal(fixture_gpu(f, 3, 1), 2);
}

static void exact_gpus_come_in_the_order_asked(void **state)
{
    struct fixture *f = *state;
    uint32_t ids[] = { 3, 1 };
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 2, .ids = ids, .n_ids = 2 });
    fixture_pass(f);
    assert_int_equal(fixture_gpu(f, 1, 0), 3);
    assert_int_equal(fixture_gpu(f, 1, 1), 1);
}

static void jobs_that_name_their_memory_share_a_gpu_until_it_is_full(void **state)
{
    struct fixture *f = *state;
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 1, .gpu_mem = 10 * GIB });
    fixture_add(f, 2, 0, (struct sched_request){ .gpus = 1, .gpu_mem = 10 * GIB });
    fixture_add(f, 3, 0, (struct sched_request){ .gpus = 1, .gpu_mem = 10 * GIB });
    fixture_add(f, 4, 0, (struct sched_request){ .gpus = 3 });
    fixture_pass(f);
    assert_int_equal(fixture_gpu(f, 1, 0), 0);
    assert_int_equal(fixture_gpu(f, 2, 0), 0);
    assert_int_equal(fixture_gpu(f, 3, 0), 1);
    assert_started(f, 3, 1, 2, 3);
}

static void an_exclusive_job_is_not_starved_by_shares(void **state)
{
    struct fixture *f = *state;
    for (uint64_t job = 1; job <= 4; job++)
        fixture_add(f, job, 0, (struct sched_request){ .gpus = 1, .gpu_mem = 16 * GIB });
    fixture_pass(f);
    fixture_add(f, 5, 0, (struct sched_request){ .gpus = 4 });
    fixture_add(f, 6, 0, (struct sched_request){ .gpus = 1, .gpu_mem = GIB });
    fixture_pass(f);
    assert_started(f, 4, 1, 2, 3, 4);
    for (uint64_t job = 1; job <= 4; job++)
        fixture_end(f, job);
    fixture_pass(f);
    assert_started(f, 5, 1, 2, 3, 4, 5);
}

static void jobs_without_gpus_are_limited_by_cpus(void **state)
{
    struct fixture *f = *state;
    for (uint64_t job = 1; job <= 3; job++)
        fixture_add(f, job, 0, (struct sched_request){ .gpus = 0 });
    fixture_add(f, 4, 0, (struct sched_request){ .gpus = 4 });
    fixture_pass(f);
    assert_started(f, 3, 1, 2, 4);
    fixture_end(f, 1);
    fixture_pass(f);
    assert_started(f, 4, 1, 2, 4, 3);
}

static void a_job_that_comes_back_has_its_old_place(void **state)
{
    struct fixture *f = *state;
    fixture_add(f, 7, 0, (struct sched_request){ .gpus = 4 });
    fixture_add(f, 8, 0, (struct sched_request){ .gpus = 4 });
    fixture_add(f, 3, 0, (struct sched_request){ .gpus = 4 });
    assert_int_equal(queue_position(&f->queue, &f->entries[3]), 1);
    assert_int_equal(queue_position(&f->queue, &f->entries[8]), 3);
    fixture_pass(f);
    assert_started(f, 1, 3);
}

static void nothing_starts_on_a_node_that_is_away(void **state)
{
    struct fixture *f = *state;
    char text[200];
    struct sched_request one = { .gpus = 1 };
    f->cluster.nodes[0].is_up = false;
    fixture_add(f, 1, 0, one);
    fixture_pass(f);
    assert_started(f, 0);
    assert_string_equal(sched_explain(&f->cluster, &one, text, sizeof(text)), "node_down");
}

static void every_reason_has_its_word(void **state)
{
    struct fixture *f = *state;
    char text[200];
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 3 });
    fixture_add(f, 2, 0, (struct sched_request){ .gpus = 1, .gpu_mem = 20 * GIB });
    fixture_pass(f);
    struct sched_request two = { .gpus = 2 }, nine = { .gpus = 9 },
                         shared = { .gpus = 1, .gpu_mem = 8 * GIB };
    struct sched_request small = { .gpus = 1, .gpu_mem = GIB };
    assert_string_equal(sched_explain(&f->cluster, &two, text, sizeof(text)), "resources");
    assert_string_equal(text, "2 GPUs asked, 0 of 4 free");
    assert_string_equal(sched_explain(&f->cluster, &nine, text, sizeof(text)), "never_fits");
    assert_string_equal(sched_explain(&f->cluster, &shared, text, sizeof(text)), "gpu_memory");
    assert_string_equal(sched_explain(&f->cluster, &small, text, sizeof(text)), "priority");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_four, fixture_close)
    const struct CMUnitTest tests[] = {
        CASE(higher_priority_starts_first_then_the_older_job),
        CASE(a_wide_job_gathers_its_gpus_and_is_not_passed),
        CASE(a_job_that_waits_for_one_gpu_does_not_hold_up_the_others),
        CASE(exact_gpus_come_in_the_order_asked),
        CASE(jobs_that_name_their_memory_share_a_gpu_until_it_is_full),
        CASE(an_exclusive_job_is_not_starved_by_shares),
        CASE(jobs_without_gpus_are_limited_by_cpus),
        CASE(a_job_that_comes_back_has_its_old_place),
        CASE(nothing_starts_on_a_node_that_is_away),
        CASE(every_reason_has_its_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
