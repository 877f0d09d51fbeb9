/* SPDX-License-Identifier: MIT */
/* The transition table, checked against its own small list of claims, and the names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "job/state.h"

static void a_done_job_never_changes_again(void **state)
{
    for (int type = 0; type < EVENT_TYPES; type++) {
        enum job_state next = JOB_NEW;
        assert_false(job_transition(JOB_DONE, (enum job_event_type)type, &next));
        assert_int_equal(next, JOB_NEW);
    }
}

static void only_a_submit_begins_a_job(void **state)
{
    for (int type = 0; type < EVENT_TYPES; type++) {
        enum job_state next;
        assert_int_equal(job_transition(JOB_NEW, (enum job_event_type)type, &next), type == EVENT_SUBMITTED);
    }
    for (int from = JOB_QUEUED; from < JOB_STATES; from++) {
        enum job_state next;
        assert_false(job_transition((enum job_state)from, EVENT_SUBMITTED, &next));
    }
}

static void resources_are_booked_only_from_the_queue(void **state)
{
    for (int from = 0; from < JOB_STATES; from++) {
        enum job_state next;
        assert_int_equal(
            job_transition((enum job_state)from, EVENT_ALLOCATED, &next), (enum job_state)from == JOB_QUEUED);
    }
}

static void an_active_state_is_left_by_proof_only(void **state)
{
    for (int from = 0; from < JOB_STATES; from++) {
        for (int type = 0; type < EVENT_TYPES; type++) {
            enum job_state next;
            if (!job_state_is_active((enum job_state)from))
                continue;
            if (!job_transition((enum job_state)from, (enum job_event_type)type, &next))
                continue;
            if (!job_state_is_active(next))
                assert_true(type == EVENT_RETURNED || type == EVENT_ENDED);
        }
    }
}

static void a_running_job_goes_back_only_by_proof_that_it_never_ran(void **state)
{
    for (int type = 0; type < EVENT_TYPES; type++) {
        enum job_state next;
        if (job_transition(JOB_RUNNING, (enum job_event_type)type, &next) && next == JOB_QUEUED)
            assert_int_equal(type, EVENT_RETURNED);
    }
}

static void an_attempt_that_never_ran_goes_back_to_the_queue(void **state)
{
    enum job_state next;
    assert_true(job_transition(JOB_STARTING, EVENT_RETURNED, &next));
    assert_int_equal(next, JOB_QUEUED);
}

static void a_stop_is_asked_for_once(void **state)
{
    enum job_state next;
    assert_false(job_transition(JOB_STOPPING, EVENT_STOP, &next));
    assert_true(job_transition(JOB_STOPPING, EVENT_RETURNED, &next));
    assert_int_equal(next, JOB_DONE);
}

static void every_state_can_be_reached_and_done_from_each(void **state)
{
    for (int from = 0; from < JOB_DONE; from++) {
        int at = from;
        for (int steps = 0; at != JOB_DONE && steps < JOB_STATES; steps++) {
            int furthest = at;
            for (int type = 0; type < EVENT_TYPES; type++) {
                enum job_state next;
                if (job_transition((enum job_state)at, (enum job_event_type)type, &next) &&
                    (int)next > furthest)
                    furthest = (int)next;
            }
            at = furthest;
        }
        assert_int_equal(at, JOB_DONE);
    }
}

static void names_read_back_to_their_values(void **state)
{
    for (int i = 0; i < JOB_STATES; i++)
        assert_int_equal(job_state_from_name(job_state_name((enum job_state)i)), i);
    for (int i = 0; i < EVENT_TYPES; i++)
        assert_int_equal(job_event_from_name(job_event_name((enum job_event_type)i)), i);
    for (int i = 0; i < END_KINDS; i++)
        assert_int_equal(job_end_from_name(job_end_name((enum job_end)i)), i);
}

static void unknown_names_and_values_are_told_apart(void **state)
{
    assert_int_equal(job_state_from_name("sleeping"), JOB_STATES);
    assert_int_equal(job_event_from_name(""), EVENT_TYPES);
    assert_int_equal(job_end_from_name("EXIT"), END_KINDS);
    assert_string_equal(job_state_name(JOB_STATES), "invalid");
    assert_string_equal(job_end_name((enum job_end)1000), "invalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_done_job_never_changes_again),
        cmocka_unit_test(only_a_submit_begins_a_job),
        cmocka_unit_test(resources_are_booked_only_from_the_queue),
        cmocka_unit_test(an_active_state_is_left_by_proof_only),
        cmocka_unit_test(a_running_job_goes_back_only_by_proof_that_it_never_ran),
        cmocka_unit_test(an_attempt_that_never_ran_goes_back_to_the_queue),
        cmocka_unit_test(a_stop_is_asked_for_once),
        cmocka_unit_test(every_state_can_be_reached_and_done_from_each),
        cmocka_unit_test(names_read_back_to_their_values),
        cmocka_unit_test(unknown_names_and_values_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
