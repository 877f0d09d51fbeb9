/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/progress.h"
#include "unit_test.h"

TEST(fractions_and_percentages_are_read)
{
    static const struct {
        const char *text;
        uint32_t ppm;
    } rows[] = {
        { "0", 0 },
        { "1", 1000000 },
        { "1.000", 1000000 },
        { "0.4", 400000 },
        { ".25", 250000 },
        { "0.1234567", 123456 },
        { "40%", 400000 },
        { "12.5 %", 125000 },
        { "100%", 1000000 },
        { "007%", 70000 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t ppm = 42;
        if (!progress_parse(rows[i].text, strlen(rows[i].text), &ppm) || ppm != rows[i].ppm)
            fail_msg("%s is %u", rows[i].text, ppm);
    }
}

TEST(what_is_no_part_of_a_whole_is_refused)
{
    static const char *const wrong[] = { "", ".", "%", " %", "1.1", "1.000001", "101%", "-0.5", "+1", "0,4",
        "0x1", "1e-1", "nan", "inf", "0.4x", "40%%", " 0.4", "4 0", "99999999999999999999", "0.5.5" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint32_t ppm = 42;
        if (progress_parse(wrong[i], strlen(wrong[i]), &ppm))
            fail_msg("'%s' is %u", wrong[i], ppm);
    }
}
