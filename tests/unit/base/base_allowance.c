/* SPDX-License-Identifier: MIT */
/* Time that comes back. */

#include "base/allowance.h"
#include "unit_test.h"

static const struct allowance_rate rate = { .percent = 20, .most_us = 1000, .debt_us = 3000 };

TEST(what_has_been_used_comes_back_with_time)
{
    struct allowance allowance = { 0 };
    assert_true(allowance_is_full(&allowance, &rate, 1000000));
    allowance_spend(&allowance, &rate, 1000000, 999);
    assert_false(allowance_is_full(&allowance, &rate, 1000000));
    assert_true(allowance_is_left(&allowance, &rate, 1000000));
    allowance_spend(&allowance, &rate, 1000000, 501);
    assert_false(allowance_is_left(&allowance, &rate, 1000000));
    assert_false(allowance_is_left(&allowance, &rate, 1000000 + 2500));
    assert_true(allowance_is_left(&allowance, &rate, 1000000 + 2501)); // a fifth of that time: what was owed
    assert_true(allowance_is_full(&allowance, &rate, 1000000 + 7500));
}

TEST(many_small_amounts_come_back_like_a_large_one)
{
    struct allowance allowance = { 0 };
    for (int64_t us = 1000000; us < 1010000; us++) // a fifth, and as much as comes back
        allowance_spend(&allowance, &rate, us, us % 5 == 0);
    assert_true(allowance_is_left(&allowance, &rate, 1010000));
    for (int64_t us = 1010000; us < 1020000; us++) // a twentieth more: half of what was saved
        allowance_spend(&allowance, &rate, us, us % 4 == 0);
    assert_true(allowance_is_left(&allowance, &rate, 1020000));
    for (int64_t us = 1020000; us < 1030000; us++)
        allowance_spend(&allowance, &rate, us, 1);
    assert_false(allowance_is_left(&allowance, &rate, 1030000));
}

TEST(nobody_owes_more_than_the_rate_says)
{
    struct allowance allowance = { 0 };
    allowance_spend(&allowance, &rate, 1000000, 3600000000);
    assert_false(allowance_is_left(&allowance, &rate, 1000000 + 15000));
    assert_true(allowance_is_left(&allowance, &rate, 1000000 + 15001));
}
