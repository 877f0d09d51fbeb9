/* SPDX-License-Identifier: MIT */
/* The transition table, checked against its own small list of claims, and the names. */
#include <string.h>

#include "job/state.h"
#include "unit_test.h"

/* Where the event leads, or JOB_STATES when it cannot happen. */
static enum job_state next_of(int from, int type, bool goes_on)
{
    enum job_state next = JOB_STATES;
    bool is_possible = job_transition((enum job_state)from, (enum job_event_type)type, goes_on, &next);
    assert_int_equal(is_possible, next != JOB_STATES);
    return next;
}

/* Every pair that is possible; `more` is where it leads when there is more to come. */
static const struct {
    enum job_state from;
    enum job_event_type type;
    enum job_state next, more;
} claims[] = {
    { JOB_NEW, EVENT_SUBMITTED, JOB_QUEUED, JOB_QUEUED },
    { JOB_QUEUED, EVENT_ALLOCATED, JOB_STARTING, JOB_STARTING },
    { JOB_QUEUED, EVENT_STOP, JOB_DONE, JOB_QUEUED },
    { JOB_QUEUED, EVENT_ENDED, JOB_DONE, JOB_STATES },
    { JOB_QUEUED, EVENT_EDITED, JOB_QUEUED, JOB_QUEUED },
    { JOB_QUEUED, EVENT_HELD, JOB_QUEUED, JOB_QUEUED },
    { JOB_QUEUED, EVENT_RELEASED, JOB_QUEUED, JOB_QUEUED },
    { JOB_QUEUED, EVENT_SPLIT, JOB_QUEUED, JOB_QUEUED },
    { JOB_QUEUED, EVENT_MEMBER, JOB_DONE, JOB_QUEUED },
    { JOB_STARTING, EVENT_STARTED, JOB_RUNNING, JOB_RUNNING },
    { JOB_STARTING, EVENT_STOP, JOB_STOPPING, JOB_STOPPING },
    { JOB_STARTING, EVENT_PREEMPTED, JOB_STOPPING, JOB_STOPPING },
    { JOB_STARTING, EVENT_RETURNED, JOB_QUEUED, JOB_QUEUED },
    { JOB_STARTING, EVENT_ENDED, JOB_DONE, JOB_DONE },
    { JOB_STARTING, EVENT_REQUEUED, JOB_QUEUED, JOB_QUEUED },
    { JOB_RUNNING, EVENT_STOP, JOB_STOPPING, JOB_STOPPING },
    { JOB_RUNNING, EVENT_PREEMPTED, JOB_STOPPING, JOB_STOPPING },
    { JOB_RUNNING, EVENT_RETURNED, JOB_QUEUED, JOB_QUEUED },
    { JOB_RUNNING, EVENT_ENDED, JOB_DONE, JOB_DONE },
    { JOB_RUNNING, EVENT_REQUEUED, JOB_QUEUED, JOB_QUEUED },
    { JOB_RUNNING, EVENT_EDITED, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_SUSPENDED, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_CONTINUED, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_SIGNALLED, JOB_RUNNING, JOB_RUNNING },
    { JOB_STARTING, EVENT_RESTORING, JOB_STARTING, JOB_STARTING },
    { JOB_STARTING, EVENT_STEP_STARTED, JOB_STARTING, JOB_STARTING },
    { JOB_STARTING, EVENT_STEP_ENDED, JOB_STARTING, JOB_STARTING },
    { JOB_RUNNING, EVENT_STEP_STARTED, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_STEP_ENDED, JOB_RUNNING, JOB_RUNNING },
    { JOB_STOPPING, EVENT_STEP_ENDED, JOB_STOPPING, JOB_STOPPING },
    { JOB_RUNNING, EVENT_IDLE, JOB_RUNNING, JOB_RUNNING },
    { JOB_STOPPING, EVENT_STARTED, JOB_STOPPING, JOB_STOPPING },
    { JOB_STOPPING, EVENT_STOP, JOB_STOPPING, JOB_STOPPING },
    { JOB_STOPPING, EVENT_HELD, JOB_STATES, JOB_STOPPING },
    { JOB_STOPPING, EVENT_RELEASED, JOB_STATES, JOB_STOPPING },
    { JOB_STOPPING, EVENT_RETURNED, JOB_DONE, JOB_QUEUED },
    { JOB_RUNNING, EVENT_PARK, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_PARKED, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_UNPARK, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_RESTORING, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_UNPARKED, JOB_RUNNING, JOB_RUNNING },
    { JOB_RUNNING, EVENT_RECONCILED, JOB_RUNNING, JOB_RUNNING },
    { JOB_STARTING, EVENT_INHERITS, JOB_STARTING, JOB_STARTING },
    { JOB_RUNNING, EVENT_INHERITS, JOB_RUNNING, JOB_RUNNING },
    { JOB_STOPPING, EVENT_INHERITS, JOB_STOPPING, JOB_STOPPING },
    { JOB_STOPPING, EVENT_REQUEUED, JOB_STATES, JOB_QUEUED },
    { JOB_STOPPING, EVENT_ENDED, JOB_DONE, JOB_DONE },
};

TEST(exactly_these_changes_are_possible)
{
    for (int i = 0; i < JOB_STATES * EVENT_TYPES; i++) {
        int from = i / EVENT_TYPES, type = i % EVENT_TYPES;
        enum job_state next = JOB_STATES, more = JOB_STATES;
        for (size_t k = 0; k < sizeof(claims) / sizeof(claims[0]); k++) {
            if ((int)claims[k].from != from || (int)claims[k].type != type)
                continue;
            next = claims[k].next;
            more = claims[k].more;
        }
        assert_int_equal(next_of(from, type, false), next);
        assert_int_equal(next_of(from, type, true), more);
    }
}

TEST(a_done_job_never_changes_again)
{
    for (int type = 0; type < EVENT_TYPES; type++) {
        assert_int_equal(next_of(JOB_DONE, type, false), JOB_STATES);
        assert_int_equal(next_of(JOB_DONE, type, true), JOB_STATES);
    }
}

TEST(resources_are_booked_only_from_the_queue)
{
    for (int from = 0; from < JOB_STATES; from++)
        assert_int_equal(next_of(from, EVENT_ALLOCATED, false) != JOB_STATES, from == JOB_QUEUED);
}

TEST(an_active_state_is_left_by_proof_only)
{
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        enum job_event_type type = claims[i].type;
        bool is_left = !job_state_is_active(claims[i].next) || !job_state_is_active(claims[i].more);
        bool is_possible = claims[i].next != JOB_STATES && claims[i].more != JOB_STATES;
        if (job_state_is_active(claims[i].from) && is_left && is_possible)
            assert_true(type == EVENT_RETURNED || type == EVENT_ENDED || type == EVENT_REQUEUED);
    }
}

TEST(a_running_job_goes_back_at_once_only_by_proof_that_its_attempt_is_over)
{
    for (int type = 0; type < EVENT_TYPES; type++)
        if (next_of(JOB_RUNNING, type, false) == JOB_QUEUED || next_of(JOB_RUNNING, type, true) == JOB_QUEUED)
            assert_true(type == EVENT_RETURNED || type == EVENT_REQUEUED);
}

TEST(a_job_that_is_being_stopped_goes_on_stopping_when_it_is_stopped_again)
{
    assert_int_equal(next_of(JOB_STOPPING, EVENT_STOP, false), JOB_STOPPING);
    assert_int_equal(next_of(JOB_STOPPING, EVENT_STOP, true), JOB_STOPPING);
}

TEST(every_state_can_be_reached_and_done_from_each)
{
    for (int from = 0; from < JOB_DONE; from++) {
        int at = from;
        for (int steps = 0; at != JOB_DONE && steps < JOB_STATES; steps++) {
            int furthest = at;
            for (int type = 0; type < EVENT_TYPES; type++) {
                int next = (int)next_of(at, type, false);
                if (next != JOB_STATES && next > furthest)
                    furthest = next;
            }
            at = furthest;
        }
        assert_int_equal(at, JOB_DONE);
    }
}

TEST(names_read_back_to_their_values)
{
    for (int i = 0; i < EVENT_TYPES; i++)
        assert_int_equal(job_event_from_name(job_event_name((enum job_event_type)i)), i);
    for (int i = 0; i < END_KINDS; i++)
        assert_int_equal(job_end_from_name(job_end_name((enum job_end)i)), i);
}

TEST(unknown_names_and_values_are_told_apart)
{
    assert_int_equal(job_event_from_name(""), EVENT_TYPES);
    assert_int_equal(job_end_from_name("EXIT"), END_KINDS);
    assert_string_equal(job_state_name(JOB_STATES), "invalid");
    assert_string_equal(job_end_name((enum job_end)1000), "invalid");
}
