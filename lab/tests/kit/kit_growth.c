/* SPDX-License-Identifier: MIT */
/* before cmocka */

#include "lab/kit/growth.h"
#include "unit_test.h"

#define COUNT     40U
#define MINUTE_MS 60000

typedef double figure_fn(size_t i);

static double leaking(size_t i)
{
    return 100 + (double)i + (double)(i % 3);
}

static double leaking_slowly(size_t i)
{
    return 100 + (double)(i / 8);
}

static double steady(size_t i)
{
    return 100;
}

static double up_and_down(size_t i)
{
    return 100 + (double)(i % 7) * 10;
}

static double warming_up(size_t i)
{
    return i < COUNT / 5 ? 10 * (double)i : 100;
}

static double higher_once(size_t i)
{
    return i == COUNT - 1 ? 1000 : 100;
}

static struct growth judge(figure_fn *figure, size_t count, double noise)
{
    struct growth_point points[COUNT];
    for (size_t i = 0; i < count; i++)
        points[i] = (struct growth_point){ .at_ms = (int64_t)i * MINUTE_MS, .value = figure(i) };
    return growth_judge(points, count, noise);
}

TEST(what_is_never_given_back_grows)
{
    struct growth found = judge(leaking, COUNT, 0);
    assert_true(found.is_growing);
    assert_true(found.per_hour > 59 && found.per_hour < 61);
    assert_true(judge(leaking_slowly, COUNT, 0).is_growing);
}

TEST(what_comes_back_does_not_grow)
{
    assert_false(judge(steady, COUNT, 0).is_growing);
    assert_false(judge(up_and_down, COUNT, 0).is_growing);
    assert_false(judge(warming_up, COUNT, 0).is_growing);
    assert_false(judge(higher_once, COUNT, 0).is_growing);
}

TEST(less_than_the_noise_is_no_growth)
{
    assert_false(judge(leaking, COUNT, 100).is_growing);
    assert_true(judge(leaking, COUNT, 5).is_growing);
}

TEST(few_measurements_say_nothing)
{
    assert_false(judge(leaking, GROWTH_LEAST - 1, 0).is_growing);
    assert_true(judge(leaking, GROWTH_LEAST, 0).is_growing);
    assert_false(judge(leaking, 0, 0).is_growing);
}
