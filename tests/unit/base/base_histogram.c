/* SPDX-License-Identifier: MIT */
#include "base/histogram.h"
#include "unit_test.h"

TEST(a_value_counts_up_to_the_first_bound_that_holds_it)
{
    struct histogram histogram = { 0 };
    const struct histogram_scale scale = { 2, { 1, 5 } };
    const double values[] = { -1, 0, 1, 1.5, 5, 5.5, 1e9 };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        histogram_add(&histogram, &scale, values[i]);
    assert_int_equal(histogram.counts[0], 3);
    assert_int_equal(histogram.counts[1], 2);
    assert_int_equal(histogram.counts[2], 2);
    assert_true(histogram.sum == 1e9 + 13);
}

TEST(bounds_ascend)
{
    const struct histogram_scale *scales[] = { &histogram_of_work, &histogram_of_turns, &histogram_of_jobs };
    for (size_t k = 0; k < 3; k++) {
        assert_in_range(scales[k]->count, 2, HISTOGRAM_BOUNDS_MAX);
        for (size_t i = 1; i < scales[k]->count; i++)
            assert_true(scales[k]->bounds[i] > scales[k]->bounds[i - 1]);
    }
}
