/* SPDX-License-Identifier: MIT */
/* Pages of jobs that ended, and sums over them. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ended_fixture.h"
#include "store/store_ended.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define DAY  INT64_C(86400000)
#define HOUR INT64_C(3600000)
#define MAX  32

/* The result. */
struct heard {
    bool is_done;
    uint64_t jobs[MAX];
    int64_t held_ms[MAX], measured_ms[MAX], used_ms[MAX];
    size_t count;
    bool has_next, is_cut;
    struct ended_place next;
    struct ended_sum sums[MAX]; // node: "-" or what it was, in `nodes`
    char nodes[MAX][16];
};

static void on_page(void *arg, const struct ended_row *rows, size_t count, const struct ended_place *next)
{
    struct heard *heard = arg;
    for (size_t i = 0; i < count; i++, heard->count++) {
        heard->jobs[heard->count] = rows[i].job->id;
        heard->held_ms[heard->count] = rows[i].held_ms;
        heard->measured_ms[heard->count] = rows[i].measured_ms;
        heard->used_ms[heard->count] = rows[i].used_ms;
    }
    heard->has_next = next != NULL;
    if (next != NULL)
        heard->next = *next;
    heard->is_done = true;
}

static void on_sums(void *arg, const struct ended_sum *sums, size_t count, bool is_cut)
{
    struct heard *heard = arg;
    for (size_t i = 0; i < count && i < MAX; i++) {
        heard->sums[i] = sums[i];
        if (sums[i].node != NULL)
            (void)strncpy(heard->nodes[i], sums[i].node, sizeof(heard->nodes[i]) - 1);
    }
    heard->count = count;
    heard->is_cut = is_cut;
    heard->is_done = true;
}

static struct ended_filter all(void)
{
    return (struct ended_filter){ .until_ms = INT64_MAX };
}

static void fetch(struct fixture *fixture, const struct ended_filter *filter, const struct ended_place *after,
    size_t limit, struct heard *heard)
{
    *heard = (struct heard){ 0 };
    store_fetch_ended(fixture->store, filter, after, limit, on_page, heard);
    fixture_dispatch_until(fixture, &heard->is_done);
}

static void sum(
    struct fixture *fixture, const struct ended_filter *filter, enum ended_by by, struct heard *heard)
{
    *heard = (struct heard){ 0 };
    store_sum_ended(fixture->store, filter, by, on_sums, heard);
    fixture_dispatch_until(fixture, &heard->is_done);
}

/*
 * Job 1: user 1 group 10, day 100: 2 GPUs for 3 hours, half busy, waited 1 h.
 * Job 2: user 2 group 10, day 101: half a GPU for 2 hours, not measured, failed, on node2.
 * Job 3: user 1 group 11, day 101: cancelled in the queue.
 */
static void fill(struct fixture *fixture)
{
    const struct past_job jobs[] = {
        { .uid = 1,
            .gid = 10,
            .name = "train-a",
            .submitted_ms = 100 * DAY,
            .started_ms = 100 * DAY + HOUR,
            .ended_ms = 100 * DAY + 4 * HOUR,
            .gpus = 2,
            .has_usage = true,
            .utilization_milli = 500 },
        { .uid = 2,
            .gid = 10,
            .name = "eval",
            .node = "node2",
            .submitted_ms = 101 * DAY,
            .started_ms = 101 * DAY,
            .ended_ms = 101 * DAY + 2 * HOUR,
            .gpus = 1,
            .share = 500,
            .exit_code = 3 },
        { .uid = 1,
            .gid = 11,
            .name = "train-b",
            .submitted_ms = 101 * DAY,
            .ended_ms = 101 * DAY + 3 * HOUR,
            .is_never_started = true },
    };
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        (void)ended_add(fixture, &jobs[i]);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(the_newest_come_first_with_what_they_held_and_used, fixture)
{
    struct ended_filter filter = all();
    struct heard heard;
    fill(fixture);
    fetch(fixture, &filter, NULL, 10, &heard);
    assert_int_equal(heard.count, 3);
    assert_false(heard.has_next);
    assert_int_equal(heard.jobs[0], 3);
    assert_int_equal(heard.jobs[2], 1);
    assert_int_equal(heard.held_ms[2], 6 * HOUR);
    assert_int_equal(heard.measured_ms[2], 6 * HOUR);
    assert_int_equal(heard.used_ms[2], 3 * HOUR);
    assert_int_equal(heard.held_ms[1], HOUR);
    assert_int_equal(heard.measured_ms[1], 0);
    assert_int_equal(heard.held_ms[0], 0);
}

CASE(a_parked_job_holds_nothing, fixture)
{
    struct ended_filter filter = all();
    struct heard heard;
    struct past_job past = { .uid = 1,
        .gid = 10,
        .started_ms = 100 * DAY,
        .ended_ms = 100 * DAY + 4 * HOUR,
        .gpus = 2,
        .parked_ms = 3 * HOUR,
        .has_usage = true,
        .utilization_milli = 500 };
    (void)ended_add(fixture, &past);
    fetch(fixture, &filter, NULL, 10, &heard);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.held_ms[0], 2 * HOUR);
    assert_int_equal(heard.measured_ms[0], 2 * HOUR);
    assert_int_equal(heard.used_ms[0], HOUR);
}

CASE(pages_follow_each_other_without_gap_or_repeat, fixture)
{
    struct ended_filter filter = all();
    struct ended_place place;
    struct heard heard;
    fill(fixture);
    for (uint64_t expected = 3; expected > 0; expected--) {
        fetch(fixture, &filter, expected < 3 ? &place : NULL, 1, &heard);
        assert_int_equal(heard.count, 1);
        assert_int_equal(heard.jobs[0], expected);
        assert_true(heard.has_next);
        place = heard.next;
    }
    fetch(fixture, &filter, &place, 1, &heard);
    assert_int_equal(heard.count, 0);
    assert_false(heard.has_next);
}

CASE(jobs_that_end_in_the_same_millisecond_are_all_there, fixture)
{
    struct ended_filter filter = all();
    struct heard heard;
    for (int i = 0; i < 3; i++)
        (void)ended_add(fixture, &(struct past_job){ .submitted_ms = 1, .started_ms = 2, .ended_ms = 7 });
    fetch(fixture, &filter, NULL, 2, &heard);
    assert_int_equal(heard.jobs[1], 2);
    const struct ended_place place = heard.next;
    fetch(fixture, &filter, &place, 2, &heard);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.jobs[0], 1);
}

CASE(each_part_of_a_filter_counts, fixture)
{
    static const struct {
        struct ended_filter filter;
        uint64_t first;
        size_t count;
    } cases[] = {
        { { .has_user = true, .uid = 1, .until_ms = INT64_MAX }, 3, 2 },
        { { .has_user = true, .uid = 7, .until_ms = INT64_MAX }, 0, 0 },
        { { .since_ms = 101 * DAY, .until_ms = INT64_MAX }, 3, 2 },
        { { .until_ms = 101 * DAY }, 1, 1 },
        { { .since_ms = 101 * DAY + 2 * HOUR, .until_ms = 101 * DAY + 3 * HOUR }, 2, 1 },
        { { .outcomes = 1U << ENDED_FAILED, .until_ms = INT64_MAX }, 2, 1 },
        { { .outcomes = 1U << ENDED_DONE | 1U << ENDED_CANCELLED, .until_ms = INT64_MAX }, 3, 2 },
        { { .name = "train-*", .until_ms = INT64_MAX }, 3, 2 },
        { { .name = "*-a", .has_user = true, .uid = 1, .until_ms = INT64_MAX }, 1, 1 },
    };
    fill(fixture);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct heard heard;
        fetch(fixture, &cases[i].filter, NULL, 10, &heard);
        assert_int_equal(heard.count, cases[i].count);
        assert_int_equal(heard.jobs[0], cases[i].first);
    }
}

CASE(sums_are_made_by_user_group_day_and_node, fixture)
{
    static const struct {
        enum ended_by by;
        size_t count;
        int64_t number; // of the first
        const char *node;
        uint64_t jobs;
        int64_t held_ms;
    } cases[] = {
        { ENDED_BY_USER, 2, 1, NULL, 2, 6 * HOUR },
        { ENDED_BY_GROUP, 2, 10, NULL, 2, 7 * HOUR },
        { ENDED_BY_DAY, 2, 100, NULL, 1, 6 * HOUR },
        { ENDED_BY_NODE, 3, 0, "", 1, 0 },
    };
    struct ended_filter filter = all();
    fill(fixture);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct heard heard;
        sum(fixture, &filter, cases[i].by, &heard);
        assert_int_equal(heard.count, cases[i].count);
        assert_int_equal(heard.sums[0].number, cases[i].number);
        assert_int_equal(heard.sums[0].jobs, cases[i].jobs);
        assert_int_equal(heard.sums[0].held_ms, cases[i].held_ms);
        assert_string_equal(heard.nodes[0], cases[i].node != NULL ? cases[i].node : "");
    }
}

CASE(a_sum_says_what_was_measured_and_how_long_they_waited, fixture)
{
    struct ended_filter filter = all();
    struct heard heard;
    fill(fixture);
    sum(fixture, &filter, ENDED_BY_GROUP, &heard);
    assert_int_equal(heard.sums[0].measured_ms, 6 * HOUR);
    assert_int_equal(heard.sums[0].used_ms, 3 * HOUR);
    assert_true(heard.sums[0].has_waits);
    assert_int_equal(heard.sums[0].wait_median_ms, 0);
    assert_true(llabs(heard.sums[0].wait_p95_ms - HOUR) <= HOUR / 50);
    assert_false(heard.sums[1].has_waits);
}

CASE(more_groups_than_the_limit_are_told, fixture)
{
    struct ended_filter filter = all();
    struct heard heard;
    assert_int_equal(
        fixture_sql(fixture, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4097)"
                             " INSERT INTO kept_days SELECT i, 1, 1, '', 1, 0, 0, 0 FROM n"),
        SQLITE_OK);
    filter.until_ms = 20 * DAY;
    sum(fixture, &filter, ENDED_BY_DAY, &heard);
    assert_int_equal(heard.count, 20 - 1);
    assert_false(heard.is_cut);
    filter.until_ms = INT64_MAX;
    sum(fixture, &filter, ENDED_BY_DAY, &heard);
    assert_int_equal(heard.count, ENDED_SUMS_MAX);
    assert_true(heard.is_cut);
}

CASE(the_sums_are_the_same_over_many_requests, fixture)
{
    struct ended_filter filter = all();
    struct heard heard;
    fill(fixture);
    assert_int_equal(fixture_sql(fixture,
                         "PRAGMA foreign_keys = OFF;"
                         "WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 10009)"
                         " INSERT INTO ended SELECT i, 5, 5, i, 0, 0, 10, 3, 2, 1, 'node9', 'x' FROM n;"
                         "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)"
                         " INSERT INTO kept_days SELECT i, 5, 5, 'node9', 2, 3, 2, 1 FROM n"),
        SQLITE_OK);
    sum(fixture, &filter, ENDED_BY_USER, &heard);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.sums[2].jobs, 10000 + 2 * 9000);
    assert_int_equal(heard.sums[2].held_ms, 3 * 19000);
    assert_int_equal(heard.sums[2].used_ms, 19000);
    assert_int_equal(heard.sums[2].wait_p95_ms, 10);
}
