/* SPDX-License-Identifier: MIT */
/* Arrays and their elements: the fold of splits and ends. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "job/array.h"
#include "job/elements.h"
#include "job/job.h"
#include "unit_test.h"

static void apply(struct job *job, struct job_event event)
{
    struct error err = { 0 };
    event.job = job->id;
    event.wall_ms = 1000 + event.type;
    if (job_apply(job, &event, &err) != 0 || job_invariant(job, &err) != 0)
        fail_msg("%s", err.message);
}

static bool is_refused(struct job *job, struct job_event event)
{
    event.job = job->id;
    return job_apply(job, &event, NULL) == -EPROTO;
}

static void make_spec(struct job_spec *spec)
{
    job_spec_init(spec);
    strings_add(&spec->command, "true");
    spec->ask.array = xstrdup("0-2%2");
    spec->ask.after = xstrdup("5");
    spec->hold = true;
}

/* An array of three, released. */
static int make_array(void **state)
{
    struct job_spec spec;
    make_spec(&spec);
    struct job *job = job_new(42, &spec);
    job_spec_clear(&spec);
    apply(job, (struct job_event){ .type = EVENT_SUBMITTED, .uid = 1000 });
    assert_int_equal(job->hold, HOLD_USER);
    apply(job, (struct job_event){ .type = EVENT_RELEASED, .hold = HOLD_USER });
    *state = job;
    return 0;
}

static int free_array(void **state)
{
    job_free(*state);
    return 0;
}

#define CASE(name, job) TEST_ON(name, struct job *job, make_array, free_array)

static void split(struct job *job, uint32_t index)
{
    apply(job, (struct job_event){ .type = EVENT_SPLIT, .array_index = index, .element = 100 + index });
}

static void finish(struct job *job, uint32_t index, enum job_end end, int32_t exit_code)
{
    apply(job, (struct job_event){ .type = EVENT_MEMBER,
                   .array_index = index,
                   .element = 100 + index,
                   .end = end,
                   .exit_code = exit_code });
}

CASE(a_new_array_has_everything_left, job)
{
    assert_true(job_is_array(job));
    assert_string_equal(job->array_left, "0-2");
    assert_int_equal(job->state, JOB_QUEUED);
}

CASE(a_split_takes_one_index_out, job)
{
    split(job, 0);
    assert_string_equal(job->array_left, "1-2");
    assert_int_equal(job->array_open, 1);
    assert_true(is_refused(job, (struct job_event){ .type = EVENT_SPLIT, .array_index = 0 }));
    assert_true(is_refused(job, (struct job_event){ .type = EVENT_SPLIT, .array_index = 3 }));
}

CASE(an_array_is_done_with_its_last_element, job)
{
    split(job, 0);
    finish(job, 0, END_EXIT, 0);
    assert_int_equal(job->state, JOB_QUEUED);
    split(job, 1);
    split(job, 2);
    finish(job, 2, END_EXIT, 0);
    assert_int_equal(job->state, JOB_QUEUED);
    finish(job, 1, END_EXIT, 0);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_EXIT);
    assert_int_equal(job->exit_code, 0);
    assert_int_equal(job->array_failed, 0);
}

CASE(an_array_has_the_exit_code_of_its_first_failed_element, job)
{
    for (uint32_t i = 0; i < 3; i++)
        split(job, i);
    finish(job, 1, END_SIGNAL, 139);
    finish(job, 0, END_EXIT, 3);
    finish(job, 2, END_EXIT, 0);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_EXIT);
    assert_int_equal(job->exit_code, 139);
    assert_int_equal(job->array_failed, 2);
}

CASE(an_element_without_an_exit_code_still_counts_as_failed, job)
{
    for (uint32_t i = 0; i < 3; i++)
        split(job, i);
    finish(job, 0, END_CANCELLED, 0);
    finish(job, 1, END_EXIT, 0);
    finish(job, 2, END_EXIT, 0);
    assert_int_equal(job->exit_code, 1);
}

CASE(an_array_without_open_elements_is_cancelled_at_once, job)
{
    split(job, 0);
    finish(job, 0, END_EXIT, 0);
    apply(job, (struct job_event){ .type = EVENT_STOP, .uid = 7 });
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_CANCELLED);
    assert_string_equal(job->array_left, "");
}

CASE(a_cancelled_array_waits_for_its_open_elements, job)
{
    split(job, 0);
    split(job, 1);
    apply(job, (struct job_event){ .type = EVENT_STOP, .uid = 7, .reason = END_DEPENDENCY });
    assert_int_equal(job->state, JOB_QUEUED);
    assert_string_equal(job->array_left, "");
    assert_int_equal(job->end, END_NONE);
    assert_true(is_refused(job, (struct job_event){ .type = EVENT_ENDED, .end = END_UNKNOWN }));
    finish(job, 1, END_EXIT, 0);
    finish(job, 0, END_EXIT, 0);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_DEPENDENCY);
    assert_int_equal(job->stopped_by, 7);
}

CASE(an_array_counts_its_elements_by_state, job)
{
    for (uint32_t i = 0; i < 2; i++)
        split(job, i);
    finish(job, 0, END_EXIT, 3);
    struct job_elements now = job_elements(job);
    assert_int_equal(now.all, 3);
    assert_int_equal(now.waiting, 1);
    assert_int_equal(now.open, 1);
    assert_int_equal(now.failed, 1);
    split(job, 2);
    finish(job, 1, END_CANCELLED, 0);
    finish(job, 2, END_EXIT, 0);
    now = job_elements(job);
    assert_int_equal(job_elements_ended(&now), 3);
    assert_int_equal(now.done, 1);
    assert_int_equal(now.failed, 1);
    assert_int_equal(now.cancelled, 1);
    assert_int_equal(job->array_exit_max, 3);
}

CASE(elements_that_never_became_jobs_end_like_their_array, job)
{
    split(job, 0);
    apply(job, (struct job_event){ .type = EVENT_STOP, .uid = 7, .reason = END_CANCELLED });
    finish(job, 0, END_EXIT, 0);
    struct job_elements now = job_elements(job);
    assert_int_equal(now.done, 1);
    assert_int_equal(now.cancelled, 2);
    assert_int_equal(now.waiting + now.open + now.failed, 0);
}

CASE(an_array_never_runs_itself, job)
{
    assert_true(is_refused(job, (struct job_event){ .type = EVENT_ALLOCATED, .attempt = 1 }));
    assert_true(is_refused(job, (struct job_event){ .type = EVENT_MEMBER }));
}

CASE(an_edit_changes_how_many_run_at_a_time_but_not_which, job)
{
    _cleanup_(job_ask_clear) struct job_ask ask;
    job_ask_copy(&ask, job->ask);
    free(ask.array);
    ask.array = xstrdup("0-2%1");
    struct job_event edited = { .type = EVENT_EDITED, .ask = { .items = &ask, .count = 1 } };
    apply(job, edited);
    assert_string_equal(job->ask->array, "0-2%1");
    ask.array[2] = '3';
    assert_true(is_refused(job, edited));
    free(take_ptr(ask.array));
    assert_true(is_refused(job, edited));
}

TEST(an_element_begins_with_what_its_array_asks_for_by_now)
{
    struct job_spec spec;
    make_spec(&spec);
    struct job_ask edited = { .gpus = 3, .array = spec.ask.array };
    struct job_event event = { .type = EVENT_SUBMITTED,
        .uid = 1000,
        .array_job = 42,
        .array_index = 2,
        .name = (char *)(uintptr_t) "new",
        .ask = { .items = &edited, .count = 1 } };
    _cleanup_(job_freep) struct job *job = job_new(102, &spec);
    apply(job, event);
    job_spec_clear(&spec);
    assert_false(job_is_array(job));
    assert_int_equal(job->array_job, 42);
    assert_int_equal(job->array_index, 2);
    assert_int_equal(job->ask->gpus, 3);
    assert_null(job->ask->array);
    assert_null(job->ask->after);
    assert_int_equal(job->hold, 0);
    assert_string_equal(job->name, "new");
    assert_true(is_refused(job, (struct job_event){ .type = EVENT_SPLIT, .array_index = 0 }));
    assert_true(is_refused(job, (struct job_event){ .type = EVENT_MEMBER }));
}

/* Random splits, ends, stops and edits, most of them wrong. */
TEST(no_order_of_events_breaks_an_array)
{
    static const enum job_event_type types[] = { EVENT_SPLIT, EVENT_SPLIT, EVENT_SPLIT, EVENT_MEMBER,
        EVENT_MEMBER, EVENT_MEMBER, EVENT_STOP, EVENT_HELD, EVENT_RELEASED, EVENT_ALLOCATED, EVENT_ENDED,
        EVENT_PREEMPTED, EVENT_REQUEUED };
    uint32_t random = 99;
    int done = 0;
    for (int round = 0; round < 500; round++) {
        void *made = NULL;
        (void)make_array(&made);
        struct job *job = made;
        for (int i = 0; i < 40; i++) {
            random = random * 1664525U + 1013904223U;
            const struct job_event event = { .job = 42,
                .type = types[(random >> 8) % (sizeof(types) / sizeof(types[0]))],
                .attempt = random >> 31,
                .wall_ms = 5,
                .array_index = (random >> 20) % 4,
                .hold = (random >> 4) % 4,
                .end = END_EXIT };
            (void)job_apply(job, &event, NULL);
            assert_int_equal(job_invariant(job, NULL), 0);
        }
        done += job->state == JOB_DONE;
        job_free(job);
    }
    assert_true(done > 100);
}
