/* SPDX-License-Identifier: MIT */
/* The forecasts told to jobs, and the starts that came. */
#include "bench.h"

#include <string.h>

#include "controller/core/forecasts.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_one, bench_close)

#define MINUTE_MS 60000

static int one, two, three;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static uint64_t submit(struct bench *b, void *request)
{
    bench_submit(b, 1000, 1, NULL, request);
    bench_settle(b);
    return bench_answer(b, request)->job;
}

static void pass_time(struct bench *b, int64_t ms)
{
    b->now_ms += ms;
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_turn(b);
}

/* One job runs, and a second has its forecast. Returns the LAUNCH of the first. */
static const struct sent *wait_behind(struct bench *b, uint64_t *ret_waiting)
{
    uint64_t first = submit(b, &one);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, first);
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    *ret_waiting = submit(b, &two);
    pass_time(b, 2000);
    return launch;
}

CASE(a_waiting_job_has_a_forecast_soon_after_its_submission, b)
{
    uint64_t waiting = 0;
    (void)wait_behind(b, &waiting);
    const struct kept_forecast *told = core_kept_forecast(b->core, 0);
    assert_non_null(told);
    assert_int_equal(told->job, waiting); // and none of the job that started at once
    assert_true(told->expected_ms > told->made_ms && told->started_ms == 0);
    assert_true(told->parts_ms[0] <= told->expected_ms && told->expected_ms <= told->parts_ms[4]);
    assert_null(core_kept_forecast(b->core, 1));
}

static size_t count_told(const struct bench *b)
{
    size_t count = 0;
    while (core_kept_forecast(b->core, count) != NULL)
        count++;
    return count;
}

static uint64_t submit_one_more(struct bench *b)
{
    b->n_answers = b->n_published = 0;
    return submit(b, &three);
}

static void await_told(struct bench *b, size_t count, int64_t step_ms)
{
    for (int i = 0; count_told(b) < count; i++) {
        struct message_heartbeat heartbeat = { .sent_ms = b->now_ms };
        struct error err;
        b->n_sent = 0;
        assert_int_equal(
            core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_HEARTBEAT, &heartbeat, &err), 0);
        assert_true(i < 10000);
        pass_time(b, step_ms);
    }
}

/* With a long queue the run is made in parts. What is submitted meanwhile is told by the next one. */
CASE(a_long_queue_is_told_in_parts, b)
{
    enum { WAITING = 100 };
    b->options.queue_max = 2 * WAITING;
    core_configure(b->core, b->now_ms, b->now_ms, &b->options);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, submit(b, &one));
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    for (size_t i = 0; i < WAITING; i++)
        (void)submit_one_more(b);
    await_told(b, WAITING, 10);
    uint64_t job = submit_one_more(b);
    for (int i = 0; i < 15; i++) { // until the next may begin
        assert_int_equal(count_told(b), WAITING);
        pass_time(b, 500);
    }
    uint64_t late = submit_one_more(b);
    await_told(b, WAITING + 2, 5);
    assert_int_equal(core_kept_forecast(b->core, 1)->job, job);
    assert_int_equal(core_kept_forecast(b->core, 0)->job, late);
}

CASE(its_start_is_noted_and_learnt_from, b)
{
    uint64_t waiting = 0;
    const struct sent *launch = wait_behind(b, &waiting);
    struct calibration before = *core_calibration(b->core);
    b->now_ms += MINUTE_MS;
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_turn(b);
    const struct kept_forecast *told = core_kept_forecast(b->core, 0);
    assert_int_equal(told->job, waiting);
    assert_true(told->started_ms >= told->made_ms + MINUTE_MS);
    assert_memory_not_equal(core_calibration(b->core), &before, sizeof(before));
}

CASE(what_its_owner_changes_is_no_fault_of_the_forecast, b)
{
    uint64_t waiting = 0;
    (void)wait_behind(b, &waiting);
    struct calibration before = *core_calibration(b->core);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, waiting, 0, &three);
    bench_settle(b);
    assert_null(core_kept_forecast(b->core, 0));
    assert_memory_equal(core_calibration(b->core), &before, sizeof(before));
}

CASE(it_outlives_a_restart, b)
{
    uint64_t waiting = 0;
    const struct sent *launch = wait_behind(b, &waiting);
    b->now_ms += MINUTE_MS;
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_turn(b);
    struct calibration calibration = *core_calibration(b->core);
    struct kept_forecast told = *core_kept_forecast(b->core, 0);
    struct bench *fresh = NULL;
    struct error err;
    size_t n_rows = 0;
    (void)bench_open((void **)&fresh);
    struct core *later = fresh->core;
    assert_non_null(b->flying);
    for (size_t i = 0; i < b->flying->n_states; i++) {
        const struct state_change *row = &b->flying->states[i];
        if (strcmp(row->kind, "forecast") != 0)
            continue;
        n_rows++;
        assert_int_equal(
            core_load_state(later, row->kind, row->key, row->value.bytes, row->value.length, &err), 0);
    }
    assert_true(n_rows >= 2); // the forecast, again with its start, and the calibration
    assert_memory_equal(core_kept_forecast(later, 0), &told, sizeof(told));
    for (size_t i = 0; i < CALIBRATION_RANGES; i++)
        assert_true(core_calibration(later)->factors[i][0] - calibration.factors[i][0] < 0.001);
    (void)bench_close((void **)&fresh);
}

CASE(damaged_rows_are_dropped, b)
{
    struct error err;
    _cleanup_buffer_ struct buffer damaged = { 0 };
    buffer_append_text(&damaged, "no record");
    assert_int_equal(core_load_state(b->core, "forecast", "7", damaged.bytes, damaged.length, &err), 0);
    assert_int_equal(core_load_state(b->core, "forecast", "70000", damaged.bytes, damaged.length, &err), 0);
    assert_null(core_kept_forecast(b->core, 0));
}
