/* SPDX-License-Identifier: MIT */
/* Lists of names as Slurm's programs read them, and for how long ended jobs are listed. */
#include "compat/slurm/jobs.h"

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/time_text.h"
#include "compat/slurm/slurm.h"
#include "unit_test.h"

TEST(a_comma_ends_a_word_and_a_blank_does_not)
{
    static const struct {
        const char *list, *text;
        bool has;
    } cases[] = {
        { "a,b", "a", true },
        { "a,b", "b", true },
        { "a,b", "a,b", false },
        { "a, b ,c", "b", true },
        { "two words,x", "two words", true },
        { "two words", "two", false },
        { "two words", "words", false },
        { " two words ", "two words", true },
        { "a,,b", "", true },
        { "a", "", false },
        { "a", NULL, false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(slurm_list_has(cases[i].list, cases[i].text), cases[i].has);
    assert_true(slurm_lists_meet("two words,x", "y,two words"));
    assert_false(slurm_lists_meet("two words", "two,words"));
    assert_false(slurm_lists_meet("a,,b", ","));
}

TEST(an_ended_job_is_listed_for_a_while)
{
    const char *ended = "2026-11-29T12:00:00.000Z";
    const int64_t at_ms = time_parse(ended), age_ms = SLURM_MIN_JOB_AGE * INT64_C(1000);
    _cleanup_json_ json_t *job = json_pack("{s:s}", "ended_at", ended);
    _cleanup_json_ json_t *open = json_pack("{s:n}", "ended_at");
    assert_false(slurm_job_is_old(job, at_ms));
    assert_false(slurm_job_is_old(job, at_ms + age_ms));
    assert_true(slurm_job_is_old(job, at_ms + age_ms + 1));
    assert_false(slurm_job_is_old(open, at_ms + age_ms + 1));
}
