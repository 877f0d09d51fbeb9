/* SPDX-License-Identifier: MIT */
/* How a moment is written. */

#include "base/utc.h"
#include "unit_test.h"

TEST(a_moment_is_written_in_utc_with_milliseconds)
{
    char text[40];
    utc_format(1795242600007, text, sizeof(text));
    assert_string_equal(text, "2026-11-21T06:30:00.007Z");
    utc_format(0, text, sizeof(text));
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
}

TEST(a_short_text_is_cut_and_closed)
{
    char text[5] = "....";
    utc_format(0, text, sizeof(text));
    assert_string_equal(text, "1970");
}
