/* SPDX-License-Identifier: MIT */
#include "job/park_refusals.h"
#include "unit_test.h"

#define MINUTE_MS 60000LL
#define NOW_MS    1000000LL
#define STEM      7U
#define MANY      4096U

static void refuse(struct park_refusals *refusals, uint64_t command_hash, bool is_lost, int64_t wall_ms)
{
    struct park_refusal refusal =
        park_refusals_next(refusals, command_hash, "the driver cannot", is_lost, wall_ms);
    (void)park_refusals_put(refusals, &refusal);
}

/* Each refusal comes at the end of the pause before it. */
TEST(pauses_grow_with_each_refusal_up_to_a_week)
{
    static const int64_t minutes[] = { 10, 60, 24 * 60, 7 * 24 * 60, 7 * 24 * 60 };
    _cleanup_(park_refusals_clear) struct park_refusals refusals = { 0 };
    int64_t now_ms = NOW_MS;
    assert_false(park_refusals_bar(&refusals, STEM, now_ms));
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        refuse(&refusals, STEM, false, now_ms);
        int64_t until_ms = now_ms + minutes[i] * MINUTE_MS;
        assert_true(park_refusals_bar(&refusals, STEM, until_ms - 1));
        assert_false(park_refusals_bar(&refusals, STEM + 1, now_ms));
        assert_false(park_refusals_bar(&refusals, STEM, until_ms));
        now_ms = until_ms;
    }
    assert_int_equal(refusals.count, 1);
}

/* Several jobs with a command that were asked at a time. */
TEST(refusals_within_a_pause_begin_no_new_one)
{
    _cleanup_(park_refusals_clear) struct park_refusals refusals = { 0 };
    for (int i = 0; i < 5; i++)
        refuse(&refusals, STEM, false, NOW_MS + i);
    assert_int_equal(park_refusals_find(&refusals, STEM)->count, 1);
    assert_false(park_refusals_bar(&refusals, STEM, NOW_MS + 10 * MINUTE_MS));
}

TEST(a_command_whose_job_was_lost_is_not_asked_again_by_itself)
{
    _cleanup_(park_refusals_clear) struct park_refusals refusals = { 0 };
    refuse(&refusals, STEM, true, NOW_MS);
    assert_true(park_refusals_bar(&refusals, STEM, NOW_MS + 400 * 24 * 60 * MINUTE_MS));
    refuse(&refusals, STEM, false, NOW_MS + 1); // by another job with it
    assert_true(park_refusals_find(&refusals, STEM)->is_lost);
    assert_true(park_refusals_drop(&refusals, STEM));
    assert_false(park_refusals_drop(&refusals, STEM));
    assert_false(park_refusals_bar(&refusals, STEM, NOW_MS + 2));
}

TEST(the_earliest_goes_when_there_are_too_many)
{
    _cleanup_(park_refusals_clear) struct park_refusals refusals = { 0 };
    for (uint64_t i = 1; i <= MANY; i++)
        refuse(&refusals, i, false, NOW_MS - (int64_t)i);
    struct park_refusal more = park_refusals_next(&refusals, MANY + 1, "no", false, NOW_MS);
    assert_int_equal(park_refusals_put(&refusals, &more), MANY);
    assert_int_equal(refusals.count, MANY);
    assert_null(park_refusals_find(&refusals, MANY));
}

/* One that an older version wrote: it said no time. */
TEST(a_row_without_a_time_bars_nothing)
{
    _cleanup_(park_refusals_clear) struct park_refusals refusals = { 0 };
    struct park_refusal old = { .command_hash = STEM };
    (void)park_refusals_put(&refusals, &old);
    assert_false(park_refusals_bar(&refusals, STEM, NOW_MS));
    refuse(&refusals, STEM, false, NOW_MS);
    assert_true(park_refusals_bar(&refusals, STEM, NOW_MS + 10 * MINUTE_MS - 1));
}
