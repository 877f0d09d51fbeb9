/* SPDX-License-Identifier: MIT */
/* After which ends a job is tried again by itself, how often, and when. */
#include <string.h>

#include "job/job.h"
#include "unit_test.h"

static struct job_event ended(enum job_end end, int32_t exit_code)
{
    return (struct job_event){ .end = end, .exit_code = exit_code, .wall_ms = 1000000 };
}

TEST(without_a_retry_policy_no_end_is_retried)
{
    struct job job = { .state = JOB_RUNNING, .ask = &(struct job_ask){ 0 } };
    for (int end = END_EXIT; end < END_KINDS; end++) {
        struct job_event event = ended((enum job_end)end, 1);
        assert_false(job_requeue_decide(&job, &event, 0));
    }
}

TEST(what_is_no_fault_of_the_command_is_tried_again)
{
    static const enum job_end ends[] = { END_START_FAILED, END_UNKNOWN, END_REBOOT, END_GPU_FAULT,
        END_NODE_LOST };
    struct job job = { .state = JOB_RUNNING, .ask = &(struct job_ask){ .retry = 1 } };
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct job_event event = ended(ends[i], 125);
        assert_true(job_requeue_decide(&job, &event, 0));
        assert_int_equal(event.cause, REQUEUE_FAILED);
    }
}

TEST(a_failing_command_is_tried_again_only_for_a_named_exit_code)
{
    char codes[] = "75,137";
    struct job job = { .state = JOB_RUNNING, .ask = &(struct job_ask){ .retry = 3, .retry_on = codes } };
    struct job_event named = ended(END_EXIT, 75), other = ended(END_EXIT, 1), good = ended(END_EXIT, 0),
                     killed = ended(END_OOM, 137), cancelled = ended(END_CANCELLED, 137);
    assert_true(job_requeue_decide(&job, &named, 0));
    assert_false(job_requeue_decide(&job, &other, 0));
    assert_false(job_requeue_decide(&job, &good, 0));
    assert_true(job_requeue_decide(&job, &killed, 0));
    assert_false(job_requeue_decide(&job, &cancelled, 0));
}

TEST(a_job_that_was_stopped_is_not_tried_again)
{
    struct job job = { .state = JOB_STOPPING,
        .stop_reason = END_CANCELLED,
        .ask = &(struct job_ask){ .retry = 3, .requeue_on_timeout = true } };
    struct job_event lost = ended(END_REBOOT, 125), timed_out = ended(END_TIME_LIMIT, 143);
    assert_false(job_requeue_decide(&job, &lost, 0));
    assert_false(job_requeue_decide(&job, &timed_out, 0));
}

TEST(a_job_that_asked_for_it_goes_on_after_the_loss_of_its_node)
{
    struct job job = { .state = JOB_RUNNING,
        .ask = &(struct job_ask){ .requeue_on_node_lost = true, .max_requeues = 2 } };
    struct job_event lost = ended(END_NODE_LOST, 125), reboot = ended(END_REBOOT, 125),
                     failed = ended(END_EXIT, 1);
    assert_true(job_requeue_decide(&job, &lost, 0));
    assert_int_equal(lost.cause, REQUEUE_NODE_LOST);
    assert_int_equal(lost.retry_ms, 0);
    assert_true(job_requeue_decide(&job, &reboot, 0));
    assert_false(job_requeue_decide(&job, &failed, 0));
    job.run = &(struct job_run){ .loss_requeues = 2 };
    assert_false(job_requeue_decide(&job, &lost, 0));
}

TEST(tries_are_counted)
{
    struct job job = {
        .state = JOB_RUNNING, .restarts = 2, .retries = 2, .ask = &(struct job_ask){ .retry = 2 }
    };
    struct job_event event = ended(END_REBOOT, 125);
    assert_false(job_requeue_decide(&job, &event, 0));
    job.ask = &(struct job_ask){ .retry = 3 };
    assert_true(job_requeue_decide(&job, &event, 0));
}

TEST(a_job_is_requeued_at_its_time_limit_as_often_as_it_takes_unless_it_names_a_number)
{
    struct job_run run = { .limit_requeues = 1000 };
    struct job job = {
        .state = JOB_RUNNING, .run = &run, .ask = &(struct job_ask){ .requeue_on_timeout = true }
    };
    struct job_event event = ended(END_TIME_LIMIT, 143);
    assert_true(job_requeue_decide(&job, &event, 0));
    assert_int_equal(event.cause, REQUEUE_TIME_LIMIT);
    assert_int_equal(event.retry_ms, 0);
    job.ask = &(struct job_ask){ .requeue_on_timeout = true, .max_requeues = 20 };
    run.limit_requeues = 19;
    assert_true(job_requeue_decide(&job, &event, 0));
    run.limit_requeues++;
    assert_false(job_requeue_decide(&job, &event, 0));
}

TEST(requeues_after_a_lost_node_have_a_bound_of_their_own)
{
    struct job_run run = { .loss_requeues = ASK_REQUEUES - 1 };
    struct job job = { .state = JOB_RUNNING,
        .run = &run,
        .ask = &(struct job_ask){ .requeue_on_node_lost = true, .requeue_on_timeout = true } };
    struct job_event event = ended(END_NODE_LOST, 125);
    assert_true(job_requeue_decide(&job, &event, 0));
    run.loss_requeues++;
    assert_false(job_requeue_decide(&job, &event, 0));
}

TEST(time_limits_and_requests_use_up_no_requeue_after_a_loss_nor_the_other_way_round)
{
    struct job_run run = { .limit_requeues = 5 };
    struct job job = { .state = JOB_RUNNING,
        .restarts = 12, // five switches, and an operator put it back seven times
        .run = &run,
        .ask = &(struct job_ask){
            .requeue_on_node_lost = true, .requeue_on_timeout = true, .max_requeues = 5 } };
    struct job_event lost = ended(END_NODE_LOST, 125), timed_out = ended(END_TIME_LIMIT, 143);
    assert_true(job_requeue_decide(&job, &lost, 0));
    assert_int_equal(lost.cause, REQUEUE_NODE_LOST);
    assert_false(job_requeue_decide(&job, &timed_out, 0));
    run = (struct job_run){ .loss_requeues = 5 };
    assert_true(job_requeue_decide(&job, &timed_out, 0));
    assert_false(job_requeue_decide(&job, &lost, 0));
}

TEST(the_wait_doubles_and_differs)
{
    struct job job = { .state = JOB_RUNNING, .ask = &(struct job_ask){ .retry = ASK_RETRY_MAX } };
    for (job.retries = 0; job.retries < ASK_RETRY_MAX; job.retries++) {
        struct job_event least = ended(END_REBOOT, 125), most = ended(END_REBOOT, 125);
        assert_true(job_requeue_decide(&job, &least, 0));
        assert_true(job_requeue_decide(&job, &most, RETRY_JITTER_MAX));
        int64_t wait_ms = job.retries < 10 ? INT64_C(1000) << job.retries : 600000;
        wait_ms = wait_ms < 600000 ? wait_ms : 600000;
        assert_int_equal(most.retry_ms - most.wall_ms, wait_ms);
        assert_int_equal(least.retry_ms - least.wall_ms, wait_ms / 2);
    }
}
