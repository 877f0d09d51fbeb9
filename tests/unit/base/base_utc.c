/* SPDX-License-Identifier: MIT */
/* How a moment is written. */

#include "base/utc.h"
#include "unit_test.h"

static void a_moment_is_written_in_utc_with_milliseconds(void **state)
{
    char text[40];
    utc_format(1795242600007, text, sizeof(text));
    assert_string_equal(text, "2026-11-21T06:30:00.007Z");
    utc_format(0, text, sizeof(text));
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
}

static void a_short_text_is_cut_and_closed(void **state)
{
    char text[5] = "....";
    utc_format(0, text, sizeof(text));
    assert_string_equal(text, "1970");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moment_is_written_in_utc_with_milliseconds),
        cmocka_unit_test(a_short_text_is_cut_and_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
