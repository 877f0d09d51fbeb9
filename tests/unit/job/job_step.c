/* SPDX-License-Identifier: MIT */
/* The steps of a job as the fold of its events. */

#include "base/memory.h"
#include "job/event.h"
#include "job/step.h"
#include "unit_test.h"

static void apply(struct job_step_history *history, enum job_event_type type, uint32_t attempt, int64_t at_ms,
    struct job_step step)
{
    struct job_event event = { .type = type,
        .attempt = attempt,
        .wall_ms = at_ms,
        .steps = { .items = &step, .count = type < EVENT_STEP_STARTED ? 0 : 1 } };
    job_step_history_apply(history, &event);
}

TEST(a_step_begins_and_ends_by_its_events)
{
    _cleanup_(job_step_history_clear) struct job_step_history history = { 0 };
    apply(&history, EVENT_STEP_STARTED, 1, 100, (struct job_step){ .id = 0 });
    apply(&history, EVENT_STEP_STARTED, 1, 200, (struct job_step){ .id = 1 });
    apply(&history, EVENT_STEP_ENDED, 1, 300,
        (struct job_step){
            .id = 0, .end = END_EXIT, .exit_code = 3, .max_rss = 7, .max_rss_task = 2, .user_ms = 5 });
    const struct job_step *steps = history.steps.items;
    assert_int_equal(history.steps.count, 2);
    assert_int_equal(steps[0].started_ms, 100);
    assert_int_equal(steps[0].ended_ms, 300);
    assert_int_equal(steps[0].exit_code, 3);
    assert_int_equal(steps[0].max_rss, 7);
    assert_int_equal(steps[0].max_rss_task, 2);
    assert_int_equal(steps[0].user_ms, 5);
    assert_int_equal(steps[1].ended_ms, 0);
}

TEST(a_step_ends_with_its_attempt)
{
    static const enum job_event_type ends[] = { EVENT_ENDED, EVENT_REQUEUED, EVENT_RETURNED };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct job_step_history history = { 0 };
        apply(&history, EVENT_STEP_STARTED, 1, 100, (struct job_step){ .id = 0 });
        apply(&history, ends[i], 1, 200, (struct job_step){ 0 });
        const struct job_step *steps = history.steps.items;
        assert_int_equal(steps[0].ended_ms, 200);
        assert_int_equal(steps[0].end, END_CANCELLED);
        job_step_history_clear(&history);
    }
}

TEST(the_next_attempt_has_its_own_numbers)
{
    _cleanup_(job_step_history_clear) struct job_step_history history = { 0 };
    apply(&history, EVENT_STEP_STARTED, 1, 100, (struct job_step){ .id = 0 });
    apply(&history, EVENT_REQUEUED, 1, 200, (struct job_step){ 0 });
    apply(&history, EVENT_STEP_STARTED, 2, 300, (struct job_step){ .id = 0 });
    apply(&history, EVENT_STEP_ENDED, 2, 400, (struct job_step){ .id = 0, .end = END_EXIT });
    const struct job_step *steps = history.steps.items;
    assert_int_equal(history.attempts[0], 1);
    assert_int_equal(history.attempts[1], 2);
    assert_int_equal(steps[0].end, END_CANCELLED);
    assert_int_equal(steps[1].end, END_EXIT);
    assert_int_equal(steps[1].ended_ms, 400);
}

TEST(gpus_are_found_by_their_place)
{
    char places[] = "0,2,11";
    const struct job_step_node node = { .gpu_places = places }, none = { 0 };
    assert_true(job_step_has_gpu(&node, 0));
    assert_false(job_step_has_gpu(&node, 1));
    assert_true(job_step_has_gpu(&node, 2));
    assert_true(job_step_has_gpu(&node, 11));
    assert_false(job_step_has_gpu(&none, 0));
}
