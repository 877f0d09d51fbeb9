/* SPDX-License-Identifier: MIT */
/* The two clocks. */
#include <time.h>

#include "base/clock.h"
#include "unit_test.h"

static void the_boot_clock_never_runs_backwards(void **state)
{
    int64_t last = clock_boot_ms();
    for (int i = 0; i < 10000; i++) {
        int64_t now = clock_boot_ms();
        assert_true(now >= last);
        last = now;
    }
}

static void the_wall_clock_agrees_with_time(void **state)
{
    int64_t seconds = clock_wall_ms() / 1000;
    int64_t expected = (int64_t)time(NULL);
    assert_true(seconds >= expected - 1 && seconds <= expected + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_boot_clock_never_runs_backwards),
        cmocka_unit_test(the_wall_clock_agrees_with_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
