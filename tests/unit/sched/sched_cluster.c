/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <errno.h>
#include <string.h>

static int open_two(void **state)
{
    return fixture_open(state, 2);
}

static void impossible_requests_are_refused_in_words(void **state)
{
    struct fixture *f = *state;
    struct error err = { 0 };
    uint32_t five[] = { 5 };
    struct sched_request many = { .gpus = 3 }, id = { .gpus = 1, .ids = five, .n_ids = 1 };
    struct sched_request memory = { .gpus = 1, .gpu_mem = 25 * GIB },
                         good = { .gpus = 2, .gpu_mem = 24 * GIB };
    assert_int_equal(cluster_check(&f->cluster, &many, &err), -ERANGE);
    assert_string_equal(err.message, "no machine here can ever run it: 3 GPUs asked, box has 2");
    assert_int_equal(cluster_check(&f->cluster, &id, &err), -ERANGE);
    assert_string_equal(err.message, "there is no GPU 5 on box; it has 2");
    assert_int_equal(cluster_check(&f->cluster, &memory, &err), -ERANGE);
    assert_non_null(strstr(err.message, "25 GiB"));
    assert_int_equal(cluster_check(&f->cluster, &good, &err), 0);
}

static void a_node_that_has_not_spoken_is_not_judged(void **state)
{
    struct fixture *f = *state;
    struct error err = { 0 };
    struct sched_request many = { .gpus = 3 };
    struct record_list nothing = { 0 };
    cluster_book(&f->cluster, "other", &nothing);
    assert_int_equal(cluster_check(&f->cluster, &many, &err), 0);
}

static void a_booking_survives_that_its_gpu_is_described_later(void **state)
{
    struct fixture *f = *state;
    struct record_list grants = { 0 };
    gpu_grants_add(&grants, 0, "GPU-late", 0, 0);
    cluster_book(&f->cluster, "late", &grants);
    struct cluster_node *node = cluster_set_node(&f->cluster, "late", 1);
    cluster_set_gpu(node, 3, "GPU-late", 24 * GIB, true);
    const struct cluster_gpu *gpu = cluster_find_gpu(node, "GPU-late");
    struct sched_request one = { .gpus = 1 };
    assert_int_equal(gpu->index, 3);
    assert_false(cluster_gpu_fits(gpu, &one));
    cluster_release(&f->cluster, "late", &grants);
    assert_true(cluster_gpu_fits(gpu, &one));
    gpu_grants_clear(&grants);
}

static void indices_may_move_and_bookings_stay_with_the_card(void **state)
{
    struct fixture *f = *state;
    struct record_list grants = { 0 };
    gpu_grants_add(&grants, 1, "GPU-1", 0, 0);
    cluster_book(&f->cluster, "box", &grants);
    struct cluster_node *node = cluster_find(&f->cluster, "box");
    cluster_forget_gpus(node);
    cluster_set_gpu(node, 0, "GPU-1", 24 * GIB, true);
    cluster_set_gpu(node, 1, "GPU-0", 24 * GIB, true);
    assert_string_equal(node->gpus[0].uuid, "GPU-1");
    assert_true(node->gpus[0].is_exclusive);
    assert_false(node->gpus[1].is_exclusive);
    cluster_release(&f->cluster, "box", &grants);
    gpu_grants_clear(&grants);
}

static void a_lost_gpu_is_given_to_nobody(void **state)
{
    struct fixture *f = *state;
    struct cluster_node *node = cluster_find(&f->cluster, "box");
    cluster_forget_gpus(node);
    cluster_set_gpu(node, 0, "GPU-0", 24 * GIB, false);
    cluster_set_gpu(node, 1, "GPU-1", 24 * GIB, true);
    struct error err;
    struct sched_request both = { .gpus = 2 };
    assert_int_equal(cluster_check(&f->cluster, &both, &err), 0); // it may come back
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 1 });
    fixture_add(f, 2, 0, (struct sched_request){ .gpus = 1 });
    fixture_pass(f);
    assert_started(f, 1, 1);
    assert_int_equal(fixture_gpu(f, 1, 0), 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_two, fixture_close)
    const struct CMUnitTest tests[] = {
        CASE(impossible_requests_are_refused_in_words),
        CASE(a_node_that_has_not_spoken_is_not_judged),
        CASE(a_booking_survives_that_its_gpu_is_described_later),
        CASE(indices_may_move_and_bookings_stay_with_the_card),
        CASE(a_lost_gpu_is_given_to_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
