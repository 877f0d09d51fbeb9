/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/utc.h"
#include "cli/top/events.h"
#include "cli/top/graph.h"
#include "cli/top/jobs.h"
#include "cli/top/points.h"
#include "cli/top/tail.h"
#include "unit_test.h"

static void put(struct top_jobs *jobs, int id, const char *state, int64_t ended_ms)
{
    char at[64];
    utc_format(ended_ms, at, sizeof(at));
    _cleanup_json_ json_t *job = json_pack("{s:i, s:s}", "id", id, "state", state);
    if (ended_ms > 0)
        (void)json_object_set_new(job, "ended_at", json_string(at));
    top_jobs_put(jobs, job);
}

TEST(jobs_stay_in_order_and_newer_objects_replace_older_ones)
{
    _cleanup_(top_jobs_clear) struct top_jobs jobs = { 0 };
    put(&jobs, 5, "queued", 0);
    put(&jobs, 2, "queued", 0);
    put(&jobs, 9, "queued", 0);
    put(&jobs, 5, "running", 0);
    assert_int_equal(jobs.count, 3);
    assert_int_equal(jobs.items[0].id, 2);
    assert_int_equal(jobs.items[2].id, 9);
    assert_true(field_is(top_jobs_find(&jobs, 5)->job, "state", "running"));
    assert_null(top_jobs_find(&jobs, 3));
}

TEST(changes_are_asked_for_once_and_never_more_than_the_limit)
{
    _cleanup_(top_jobs_clear) struct top_jobs jobs = { 0 };
    put(&jobs, 5, "queued", 0);
    top_jobs_touch(&jobs, 5);
    top_jobs_touch(&jobs, 7);
    top_jobs_touch(&jobs, 7);
    top_jobs_touch(&jobs, 8);
    top_jobs_touch(&jobs, 0);
    _cleanup_free_ char *first = top_jobs_take_changed(&jobs, 2), *second = top_jobs_take_changed(&jobs, 2);
    assert_string_equal(first, "5,7");
    assert_string_equal(second, "8");
    assert_null(top_jobs_take_changed(&jobs, 2));
}

TEST(old_ends_and_what_was_never_told_are_forgotten)
{
    _cleanup_(top_jobs_clear) struct top_jobs jobs = { 0 };
    const int64_t now = INT64_C(1800000000000);
    put(&jobs, 1, "done", now - TOP_ENDED_FOR_MS - 1000);
    put(&jobs, 2, "done", now - 1000);
    put(&jobs, 3, "queued", 0);
    top_jobs_touch(&jobs, 4);
    top_jobs_prune(&jobs, now);
    assert_null(top_jobs_find(&jobs, 1));
    assert_non_null(top_jobs_find(&jobs, 4));
    free(top_jobs_take_changed(&jobs, 10));
    top_jobs_prune(&jobs, now);
    assert_null(top_jobs_find(&jobs, 4));
    assert_int_equal(jobs.count, 2);
}

TEST(of_many_ends_the_latest_are_kept)
{
    _cleanup_(top_jobs_clear) struct top_jobs jobs = { 0 };
    const int64_t now = INT64_C(1800000000000);
    for (int i = 1; i <= TOP_ENDED_MAX + 50; i++)
        put(&jobs, i, "failed", now - (int64_t)i * 1000);
    put(&jobs, 1000, "running", 0);
    top_jobs_prune(&jobs, now);
    assert_int_equal(jobs.count, TOP_ENDED_MAX + 1);
    assert_non_null(top_jobs_find(&jobs, TOP_ENDED_MAX));
    assert_null(top_jobs_find(&jobs, TOP_ENDED_MAX + 1));
}

TEST(a_new_list_keeps_marks_and_what_changed_while_it_came)
{
    _cleanup_(top_jobs_clear) struct top_jobs jobs = { 0 };
    put(&jobs, 1, "queued", 0);
    put(&jobs, 2, "queued", 0);
    top_jobs_find(&jobs, 2)->is_marked = true;
    top_jobs_touch(&jobs, 3);
    top_jobs_reset(&jobs);
    assert_int_equal(jobs.count, 2);
    assert_true(top_jobs_find(&jobs, 2)->is_marked);
    assert_true(top_jobs_find(&jobs, 3)->is_changed);
}

TEST(time_goes_on_between_two_answers)
{
    _cleanup_json_ json_t *running = json_pack(
        "{s:s, s:s, s:f}", "state", "running", "started_at", "2026-01-01T00:00:00Z", "run_seconds", 1.0);
    _cleanup_json_ json_t *done = json_pack(
        "{s:s, s:s, s:f}", "state", "done", "started_at", "2026-01-01T00:00:00Z", "run_seconds", 1.0);
    const int64_t now = INT64_C(1767225600000) + 90000;
    top_job_tick(running, now);
    top_job_tick(done, now);
    assert_int_equal((int)field_number(running, "run_seconds", 0), 90);
    assert_int_equal((int)field_number(done, "run_seconds", 0), 1);
}

TEST(parked_time_is_no_run_time)
{
    _cleanup_json_ json_t *parked =
        json_pack("{s:s, s:s, s:s, s:f, s:f}", "state", "running", "started_at", "2026-01-01T00:00:00Z",
            "parked_at", "2026-01-01T00:00:10Z", "parked_seconds", 50.0, "run_seconds", 10.0);
    _cleanup_json_ json_t *back = json_pack("{s:s, s:s, s:f, s:f}", "state", "running", "started_at",
        "2026-01-01T00:00:00Z", "parked_seconds", 50.0, "run_seconds", 10.0);
    const int64_t now = INT64_C(1767225600000) + 90000;
    top_job_tick(parked, now);
    top_job_tick(back, now);
    assert_int_equal((int)field_number(parked, "run_seconds", 0), 10);
    assert_int_equal((int)field_number(back, "run_seconds", 0), 40);
}

TEST(a_plot_is_the_mean_of_the_jobs_own_gpus)
{
    static double points[POINTS_MAX];
    _cleanup_json_ json_t *job = json_loads("{\"granted\": [{\"uuid\": \"a\"}, {\"uuid\": \"b\"}]}", 0, NULL);
    _cleanup_json_ json_t *past =
        json_loads("{\"gpus\": [{\"uuid\": \"a\", \"utilization\": [1, null, null, 0.5]},"
                   " {\"uuid\": \"x\", \"utilization\": [1, 1, 1, 1]},"
                   " {\"uuid\": \"b\", \"utilization\": [0, 0.25, null]}]}",
            0, NULL);
    assert_int_equal(points_of_gpus(job, past, "utilization", points), 4);
    assert_true(points[0] == 0.5 && points[1] == 0.25 && points[2] == GRAPH_UNKNOWN && points[3] == 0.5);
    assert_true(points_peak(points, 4) == 0.5);
    assert_int_equal(points_of_gpus(job, NULL, "utilization", points), 0);
}

TEST(an_ended_job_has_a_plot_of_its_own_time)
{
    static double points[POINTS_MAX];
    _cleanup_json_ json_t *usage = json_loads("{\"timeline\": [[50, 25, 3], [100, null, 3]]}", 0, NULL);
    assert_int_equal(points_of_usage(usage, 0, points), 2);
    assert_true(points[0] == 0.5 && points[1] == 1);
    assert_int_equal(points_of_usage(usage, 1, points), 2);
    assert_true(points[0] == 0.25 && points[1] == GRAPH_UNKNOWN);
    assert_int_equal(points_of_usage(NULL, 0, points), 0);
}

/* --- events --- */

struct heard {
    char text[256];
};

static void hear(void *target, const char *type, const char *text)
{
    struct heard *heard = target;
    (void)snprintf(
        heard->text + strlen(heard->text), sizeof(heard->text) - strlen(heard->text), "<%s %s>", type, text);
}

TEST(events_come_in_pieces_of_any_size)
{
    static const char text[] =
        "retry: 2000\n\nid: 1\nevent: started\ndata: {\"a\":1}\n\n: hello\n\nevent:reset\ndata: 7\r\n\r\n";
    for (size_t size = 1; size < sizeof(text); size++) {
        struct heard heard = { "" };
        struct events events = { .take = hear, .target = &heard };
        for (size_t at = 0; at < strlen(text); at += size)
            assert_int_equal(
                events_add(&events, text + at, at + size < strlen(text) ? size : strlen(text) - at), 0);
        assert_string_equal(heard.text, "<started {\"a\":1}><reset 7>");
        events_clear(&events);
    }
}

TEST(an_endless_line_of_events_is_refused)
{
    _cleanup_(events_clear) struct events events = { .take = hear };
    _cleanup_free_ char *line = xcalloc(1, EVENT_LINE_MAX + 1);
    memset(line, 'x', EVENT_LINE_MAX + 1);
    assert_true(events_add(&events, line, EVENT_LINE_MAX + 1) < 0);
}

/* --- the log --- */

TEST(a_log_is_plain_lines_with_progress_bars_as_they_stand)
{
    static const char text[] = "one\r\n\033[31mtwo\033[0m\n10%\r20%\rdone\na\tb\nopen";
    _cleanup_(tail_clear) struct tail tail = { 0 };
    for (size_t i = 0; i < strlen(text); i++)
        tail_add(&tail, text + i, 1);
    assert_int_equal(tail_count(&tail), 5);
    assert_string_equal(tail_line(&tail, 0), "one");
    assert_string_equal(tail_line(&tail, 1), "two");
    assert_string_equal(tail_line(&tail, 2), "done");
    assert_string_equal(tail_line(&tail, 3), "a       b");
    assert_string_equal(tail_line(&tail, 4), "open");
}

TEST(only_the_last_lines_of_a_log_are_kept_and_long_ones_are_cut)
{
    _cleanup_(tail_clear) struct tail tail = { 0 };
    _cleanup_free_ char *long_line = xcalloc(1, TAIL_LINE_BYTES * 2);
    memset(long_line, 'y', TAIL_LINE_BYTES * 2 - 1);
    for (int i = 0; i < TAIL_LINES + 10; i++) {
        char line[32];
        (void)snprintf(line, sizeof(line), "%d\n", i);
        tail_add(&tail, line, strlen(line));
    }
    assert_int_equal(tail_count(&tail), TAIL_LINES);
    assert_string_equal(tail_line(&tail, 0), "10");
    tail_add(&tail, long_line, strlen(long_line));
    assert_int_equal(strlen(tail_line(&tail, TAIL_LINES)), TAIL_LINE_BYTES);
}
