/* SPDX-License-Identifier: MIT */
#include "fixture.h"

static int open_two(void **state)
{
    return fixture_open(state, 2);
}

static void best_fit_fills_the_fullest_gpu_and_first_fit_the_first(void **state)
{
    struct fixture *f = *state;
    uint32_t one[] = { 1 };
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 1, .gpu_mem = 12 * GIB, .ids = one, .n_ids = 1 });
    fixture_pass(f);
    struct sched_request request = { .gpus = 1, .gpu_mem = 10 * GIB };
    struct cluster_node *node = NULL;
    struct record_list best = { 0 }, first = { 0 };
    assert_true(placement_best_fit.place(&f->cluster, &request, &node, &best));
    assert_true(placement_first_fit.place(&f->cluster, &request, &node, &first));
    assert_int_equal(((struct gpu_grant *)best.items)[0].index, 1);
    assert_int_equal(((struct gpu_grant *)first.items)[0].index, 0);
    gpu_grants_clear(&best);
    gpu_grants_clear(&first);
}

static void a_claim_takes_empty_gpus_before_shared_ones_and_only_as_many_as_asked(void **state)
{
    struct fixture *f = *state;
    fixture_add(f, 1, 0, (struct sched_request){ .gpus = 1, .gpu_mem = GIB });
    fixture_pass(f);
    struct sched_request one = { .gpus = 1 }, three = { .gpus = 3 };
    assert_int_equal(placement_claim(&f->cluster, &one), 1);
    assert_false(f->cluster.nodes[0].gpus[0].is_claimed);
    assert_true(f->cluster.nodes[0].gpus[1].is_claimed);
    assert_int_equal(placement_claim(&f->cluster, &three), 1);
    assert_int_equal(placement_claim(&f->cluster, &three), 0);
}

static void what_is_claimed_is_not_placed(void **state)
{
    struct fixture *f = *state;
    struct sched_request one = { .gpus = 1 };
    struct cluster_node *node = NULL;
    struct record_list grants = { 0 };
    assert_int_equal(placement_claim(&f->cluster, &one), 1);
    assert_true(placement_best_fit.place(&f->cluster, &one, &node, &grants));
    assert_int_equal(((struct gpu_grant *)grants.items)[0].index, 1);
    gpu_grants_clear(&grants);
    assert_int_equal(placement_claim(&f->cluster, &one), 1);
    assert_false(placement_best_fit.place(&f->cluster, &one, &node, &grants));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_two, fixture_close)
    const struct CMUnitTest tests[] = {
        CASE(best_fit_fills_the_fullest_gpu_and_first_fit_the_first),
        CASE(a_claim_takes_empty_gpus_before_shared_ones_and_only_as_many_as_asked),
        CASE(what_is_claimed_is_not_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
