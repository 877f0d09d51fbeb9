/* SPDX-License-Identifier: MIT */
#include "store/wait_sketch.h"
#include "unit_test.h"

static void an_empty_sketch_has_no_quantile_but_0(void **state)
{
    static const struct wait_sketch sketch;
    (void)state;
    assert_int_equal(wait_sketch_quantile(&sketch, 95), 0);
}

static void short_waits_are_exact(void **state)
{
    struct wait_sketch sketch = { 0 };
    (void)state;
    for (int64_t ms = 1; ms <= 21; ms++)
        wait_sketch_add(&sketch, ms);
    assert_int_equal(wait_sketch_quantile(&sketch, 50), 11);
    assert_int_equal(wait_sketch_quantile(&sketch, 95), 20);
    assert_int_equal(wait_sketch_quantile(&sketch, 100), 21);
}

static void every_duration_is_told_within_2_percent(void **state)
{
    (void)state;
    for (int64_t ms = 1; ms < INT64_C(1) << 40; ms += ms / 7 + 1) {
        struct wait_sketch sketch = { 0 };
        wait_sketch_add(&sketch, ms);
        int64_t told = wait_sketch_quantile(&sketch, 50);
        assert_true(told * 100 >= ms * 98 && told * 100 <= ms * 102);
    }
}

static void what_cannot_be_is_counted_at_the_ends(void **state)
{
    struct wait_sketch sketch = { 0 };
    (void)state;
    wait_sketch_add(&sketch, -5);
    assert_int_equal(wait_sketch_quantile(&sketch, 50), 0);
    wait_sketch_add(&sketch, INT64_MAX);
    assert_true(wait_sketch_quantile(&sketch, 100) > INT64_C(1) << 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_sketch_has_no_quantile_but_0),
        cmocka_unit_test(short_waits_are_exact),
        cmocka_unit_test(every_duration_is_told_within_2_percent),
        cmocka_unit_test(what_cannot_be_is_counted_at_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
