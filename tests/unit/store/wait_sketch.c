/* SPDX-License-Identifier: MIT */
#include "store/wait_sketch.h"
#include "unit_test.h"

TEST(an_empty_sketch_has_no_quantile_but_0)
{
    static const struct wait_sketch sketch;
    assert_int_equal(wait_sketch_quantile(&sketch, 95), 0);
}

TEST(short_waits_are_exact)
{
    struct wait_sketch sketch = { 0 };
    for (int64_t ms = 1; ms <= 21; ms++)
        wait_sketch_add(&sketch, ms);
    assert_int_equal(wait_sketch_quantile(&sketch, 50), 11);
    assert_int_equal(wait_sketch_quantile(&sketch, 95), 20);
    assert_int_equal(wait_sketch_quantile(&sketch, 100), 21);
}

TEST(every_duration_is_told_within_2_percent)
{
    for (int64_t ms = 1; ms < INT64_C(1) << 40; ms += ms / 7 + 1) {
        struct wait_sketch sketch = { 0 };
        wait_sketch_add(&sketch, ms);
        int64_t told = wait_sketch_quantile(&sketch, 50);
        assert_true(told * 100 >= ms * 98 && told * 100 <= ms * 102);
    }
}

TEST(what_cannot_be_is_counted_at_the_ends)
{
    struct wait_sketch sketch = { 0 };
    wait_sketch_add(&sketch, -5);
    assert_int_equal(wait_sketch_quantile(&sketch, 50), 0);
    wait_sketch_add(&sketch, INT64_MAX);
    assert_true(wait_sketch_quantile(&sketch, 100) > INT64_C(1) << 40);
}
