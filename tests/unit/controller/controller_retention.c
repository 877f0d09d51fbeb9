/* SPDX-License-Identifier: MIT */
/* Which steps of the wall clock keep old jobs from being removed. */

#include "controller/retention.h"
#include "unit_test.h"

#define HOUR_MS (3600 * 1000LL)
#define DAY_MS  (24 * HOUR_MS)

TEST(a_step_forward_of_more_than_a_day_is_a_jump)
{
    assert_true(retention_is_jump(DAY_MS + HOUR_MS + 1, HOUR_MS));
    assert_true(retention_is_jump(3 * 365 * DAY_MS, 1000));
}

TEST(a_smaller_step_and_a_step_back_are_none)
{
    assert_false(retention_is_jump(HOUR_MS, HOUR_MS));
    assert_false(retention_is_jump(DAY_MS + HOUR_MS, HOUR_MS));
    assert_false(retention_is_jump(-3 * 365 * DAY_MS, HOUR_MS));
}

TEST(time_that_has_passed_is_no_jump)
{
    assert_false(retention_is_jump(30 * DAY_MS, 30 * DAY_MS));
}
