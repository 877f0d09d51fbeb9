/* SPDX-License-Identifier: MIT */
/* The two clocks. */
#include <time.h>

#include "base/clock.h"
#include "unit_test.h"

TEST(the_boot_clock_never_runs_backwards)
{
    int64_t last = clock_boot_ms();
    for (int i = 0; i < 10000; i++) {
        int64_t now = clock_boot_ms();
        assert_true(now >= last);
        last = now;
    }
}

TEST(the_wall_clock_agrees_with_time)
{
    int64_t seconds = clock_wall_ms() / 1000;
    int64_t expected = (int64_t)time(NULL);
    assert_true(seconds >= expected - 1 && seconds <= expected + 1);
}
