/* SPDX-License-Identifier: MIT */
/* The two clocks and how a moment is written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "base/clock.h"

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

static void a_moment_is_written_in_utc_with_milliseconds(void **state)
{
    char text[40];
    clock_format_utc(1795242600007, text, sizeof(text));
    assert_string_equal(text, "2026-11-21T06:30:00.007Z");
    clock_format_utc(0, text, sizeof(text));
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
}

static void a_short_text_is_cut_and_closed(void **state)
{
    char text[5] = "....";
    clock_format_utc(0, text, sizeof(text));
    assert_string_equal(text, "1970");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_boot_clock_never_runs_backwards),
        cmocka_unit_test(the_wall_clock_agrees_with_time),
        cmocka_unit_test(a_moment_is_written_in_utc_with_milliseconds),
        cmocka_unit_test(a_short_text_is_cut_and_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
