/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/gpu/check.h"
#include "base/memory.h"
#include "job/event.h"

#include "base/gpu_vendor.h"
#include "unit_test.h"

#define MIB (1ULL << 20)

static const struct spool_id first = { .job = 41, .attempt = 1 }, second = { .job = 42, .attempt = 1 };
static char uuid[] = "GPU-0", other_uuid[] = "GPU-1";
static struct gpu_check *check;
static uint64_t asked;
static int64_t now_ms;       // of reports
static struct gpu_state gpu; // as the last report left it
static struct gpu_process process;
static struct gpu_xid xid;

static uint64_t ask(void *arg, const struct record_list *grants)
{
    const struct gpu_grant *items = grants->items;
    assert_int_equal(grants->count, 1);
    assert_string_equal(items[0].uuid, uuid);
    return ++asked;
}

static void take(const struct spool_id *id, uint32_t slot)
{
    _cleanup_(gpu_grants_clear) struct record_list grants = { 0 };
    (void)gpu_grants_add(&grants, 0, "GPU-0", slot, 0);
    gpu_check_take(check, id, &grants);
}

/* A report that answers all looks so far. */
static bool report(uint64_t used_mib)
{
    gpu.memory_used_bytes = used_mib * MIB;
    struct record_list gpus = { &gpu, 1 };
    gpu.answers = asked;
    return gpu_check_report(check, &gpus, now_ms);
}

static int start(const struct spool_id *id)
{
    return gpu_check_start(check, id, NULL);
}

/* Job 41 had the GPU and is over; job 42 wants it. */
static void one_after_the_other(void)
{
    take(&first, 0);
    assert_int_equal(start(&first), 0);
    gpu_check_end(check, &first, 1000);
    take(&second, 0);
}

static int setup(void **state)
{
    asked = 0;
    now_ms = 2000;
    gpu = (struct gpu_state){
        .uuid = uuid, .memory_bytes = 24576 * MIB, .valid = GPU_MEMORY_USED | GPU_PROCESSES
    };
    check = gpu_check_new(ask, NULL);
    (void)report(10);
    return 0;
}

static int teardown(void **state)
{
    gpu_check_free(check);
    free(gpu.trouble);
    return 0;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

CASE(the_next_job_starts_when_the_gpu_was_seen_clean)
{
    one_after_the_other();
    assert_int_equal(asked, 1);
    assert_int_equal(start(&second), -EINPROGRESS);
    assert_false(report(500));
    assert_int_equal(start(&second), 0);
}

/* mgpud, restored from a backup, has given the GPU away while the job is still on it. */
CASE(a_job_does_not_start_while_another_runs_on_its_gpu)
{
    take(&first, 0);
    assert_int_equal(start(&first), 0);
    take(&second, 0);
    assert_int_equal(start(&second), -EALREADY);
    assert_int_equal(gpu_check_return(check, &second, NULL), -EBUSY);
    gpu_check_end(check, &first, 1000);
    (void)report(10);
    assert_int_equal(start(&second), 0);
    assert_int_equal(gpu_check_return(check, &second, NULL), 0);
}

CASE(shares_of_a_gpu_do_not_wait_for_each_other)
{
    take(&first, 1);
    assert_int_equal(start(&first), 0);
    take(&second, 2);
    assert_int_equal(start(&second), 0);
}

CASE(a_report_from_before_the_end_says_nothing)
{
    struct record_list gpus = { &gpu, 1 };
    one_after_the_other();
    gpu.answers = 0;
    (void)gpu_check_report(check, &gpus, now_ms);
    assert_int_equal(start(&second), -EINPROGRESS);
}

/* Where the system has its page cache in it. */
CASE(memory_that_is_the_system_s_too_is_not_compared)
{
    gpu.is_host_memory = 1;
    one_after_the_other();
    assert_false(report(12000));
    assert_int_equal(gpu.is_unclean, 0);
    assert_int_equal(start(&second), 0);
}

CASE(memory_that_no_process_has_keeps_the_next_job_away)
{
    struct error err = { 0 };
    one_after_the_other();
    assert_true(report(12000));
    assert_int_equal(gpu.is_unclean, 1);
    assert_string_equal(gpu.trouble, "11.7 GiB still used by no process");
    assert_int_equal(gpu_check_start(check, &second, &err), -EBUSY);
    assert_string_equal(err.message, "GPU 0 is not clean: 11.7 GiB still used by no process");
    assert_false(report(12000)); // no news
    assert_true(report(10));
    assert_int_equal(gpu.is_unclean, 0);
    assert_null(gpu.trouble);
    assert_int_equal(start(&second), 0);
}

CASE(a_driver_may_need_a_moment_to_take_memory_back)
{
    one_after_the_other();
    now_ms = 1100;
    assert_false(report(12000));
    assert_int_equal(gpu.is_unclean, 0);
    assert_int_equal(asked, 1);
    assert_int_equal(start(&second), -EINPROGRESS);
    assert_int_equal(asked, 2); // and it is looked again, for who waits
    assert_int_equal(start(&second), -EINPROGRESS);
    assert_int_equal(asked, 2);
    now_ms = 1160;
    (void)report(10);
    assert_int_equal(start(&second), 0);
}

CASE(what_somebody_else_uses_is_not_left_over)
{
    one_after_the_other();
    process = (struct gpu_process){ .pid = 9, .start = 1, .is_memory_known = 1, .memory_bytes = 12000 * MIB };
    gpu.processes = (struct record_list){ &process, 1 };
    (void)report(12010);
    assert_int_equal(start(&second), 0);
}

CASE(where_memory_cannot_be_told_it_is_not_held_against_the_gpu)
{
    one_after_the_other();
    process = (struct gpu_process){ .pid = 9, .start = 1 };
    gpu.processes = (struct record_list){ &process, 1 };
    (void)report(12010);
    assert_int_equal(start(&second), 0);
}

CASE(a_process_of_the_ended_job_keeps_the_next_away)
{
    struct error err = { 0 };
    one_after_the_other();
    process = (struct gpu_process){ .pid = 9, .start = 1, .is_memory_known = 1, .job = 41, .attempt = 1 };
    process.command = (char[]){ "python train.py" };
    gpu.processes = (struct record_list){ &process, 1 };
    (void)report(10);
    assert_int_equal(gpu_check_start(check, &second, &err), -EBUSY);
    assert_non_null(strstr(err.message, "process 9 (python train.py) of job 41 is still there"));
    gpu.processes.count = 0;
    (void)report(10);
    assert_int_equal(start(&second), 0);
}

CASE(on_a_shared_gpu_the_last_one_leaves_it_to_be_looked_at)
{
    take(&first, 1);
    take(&second, 2);
    assert_int_equal(start(&first), 0);
    assert_int_equal(start(&second), 0);
    gpu_check_end(check, &first, 1000);
    (void)report(12000);
    assert_int_equal(gpu.is_unclean, 0);
    gpu_check_end(check, &second, 1000);
    (void)report(12000);
    assert_int_equal(gpu.is_unclean, 1);
}

CASE(a_gpu_that_does_not_answer_is_not_waited_for)
{
    one_after_the_other();
    gpu.is_lost = 1;
    assert_true(report(10));
    assert_int_equal(start(&second), -EBUSY);
}

CASE(a_gpu_is_looked_at_when_an_agent_first_sees_it)
{
    gpu.uuid = other_uuid;
    assert_true(report(12000));
    assert_int_equal(gpu.is_unclean, 1);
    assert_true(report(1000));
    assert_int_equal(gpu.is_unclean, 0);
}

CASE(what_runs_since_before_the_agent_is_left_alone)
{
    take(&first, 0);
    gpu_check_resume(check, &first);
    gpu.uuid = other_uuid;
    struct record_list grants = { 0 };
    (void)gpu_grants_add(&grants, 1, "GPU-1", 0, 0);
    gpu_check_take(check, &second, &grants);
    gpu_grants_clear(&grants);
    gpu_check_resume(check, &second);
    (void)report(12000);
    assert_int_equal(gpu.is_unclean, 0);
}

CASE(nothing_starts_on_a_gpu_that_has_just_failed)
{
    struct error err = { 0 };
    one_after_the_other();
    xid = (struct gpu_xid){ 79, 5000 };
    gpu.xids = (struct record_list){ &xid, 1 };
    assert_true(report(10));
    assert_int_equal(gpu_check_start(check, &second, &err), -EBUSY);
    assert_string_equal(err.message, "GPU 0: Xid 79: GPU has fallen off the bus");
    /* Whoever is sent there later knows of it. */
    gpu_check_drop(check, &second);
    take(&second, 0);
    assert_int_equal(start(&second), 0);
}

CASE(an_error_after_the_clock_was_set_back_is_news)
{
    struct gpu_xid xids[] = { { 31, 5000, 10 }, { 79, 40, 20 } };
    gpu.xids = (struct record_list){ xids, 1 };
    assert_true(report(10));
    assert_false(report(20));
    gpu.xids = (struct record_list){ xids, 2 };
    assert_true(report(30));
    gpu.xids = (struct record_list){ &xids[1], 1 }; // a list that remembers fewer
    assert_false(report(40));
}

CASE(the_worst_error_of_a_job_is_noted_once)
{
    struct gpu_xid xids[] = { { 79, 2000, 900 }, { 31, 500, 1000 },
        { 45, 1001, 1001 } }; // a clock that was set
    struct job_usage *usage = NULL;
    take(&first, 0);
    assert_int_equal(start(&first), 0);
    gpu_check_note_fault(check, &first, 1000, &usage);
    assert_null(usage);
    gpu.xids = (struct record_list){ xids, 3 };
    (void)report(10);
    gpu_check_note_fault(check, &first, 1000, &usage);
    assert_int_equal(usage->xid, 31);
    assert_string_equal(
        usage->fault, "GPU 0: Xid 31: GPU memory page fault: a program accessed an invalid address");
    xids[2] = (struct gpu_xid){ 94, 1002, 1002 };
    (void)report(10);
    gpu_check_note_fault(check, &first, 1000, &usage);
    assert_int_equal(usage->xid, 94);
    job_usage_free(usage);
}

static size_t visited;

static void visit(void *arg, const struct spool_id *id)
{
    assert_true(id->job == 41 || id->job == 42);
    visited++;
}

CASE(who_waits_is_called_once)
{
    visited = 0;
    one_after_the_other();
    gpu_check_each_waiting(check, visit, NULL);
    assert_int_equal(visited, 0);
    (void)start(&second);
    (void)report(10);
    gpu_check_each_waiting(check, visit, NULL);
    gpu_check_each_waiting(check, visit, NULL);
    assert_int_equal(visited, 1);
}

CASE(who_would_have_to_wait_on_is_not_called)
{
    visited = 0;
    one_after_the_other();
    (void)start(&second);
    now_ms = 1100;
    (void)report(12000);
    gpu_check_each_waiting(check, visit, NULL);
    assert_int_equal(visited, 0);
    now_ms = 1600;
    (void)report(12000);
    gpu_check_each_waiting(check, visit, NULL);
    assert_int_equal(visited, 1);
}

CASE(an_attempt_behind_another_is_called_when_that_one_has_left)
{
    visited = 0;
    take(&first, 0);
    assert_int_equal(start(&first), 0);
    take(&second, 0);
    assert_int_equal(start(&second), -EALREADY);
    (void)report(10); // of the end of a job on another GPU
    gpu_check_each_waiting(check, visit, NULL);
    assert_int_equal(visited, 0);
    gpu_check_end(check, &first, 1000);
    (void)report(10);
    gpu_check_each_waiting(check, visit, NULL);
    assert_int_equal(visited, 1);
    assert_int_equal(start(&second), 0);
}

/* The visit of the one that has failed finds that its GPU has not. */
static void settle(void *arg, const struct spool_id *id)
{
    visited++;
    if (id->job == 41)
        assert_false(gpu_check_awaits_errors(check, id, 1051));
    else
        assert_int_equal(start(id), 0);
}

CASE(an_attempt_behind_one_that_has_failed_is_called_after_it)
{
    visited = 0;
    gpu.vendor = GPU_VENDOR_NVIDIA;
    (void)report(10);
    take(&second, 0);
    take(&first, 0);
    assert_int_equal(start(&first), 0);
    assert_int_equal(start(&second), -EALREADY);
    gpu_check_end(check, &first, 1000);
    (void)report(10);
    assert_true(gpu_check_awaits_errors(check, &first, 1050));
    (void)report(10);
    gpu_check_each_waiting(check, settle, NULL);
    assert_int_equal(visited, 2);
}

CASE(the_error_of_a_job_may_come_a_little_after_its_end)
{
    gpu.vendor = GPU_VENDOR_NVIDIA;
    (void)report(10);
    one_after_the_other();
    (void)report(10);
    assert_true(gpu_check_awaits_errors(check, &first, 1049));
    assert_true(gpu_check_awaits_errors(check, &first, 1050));
    (void)report(10);
    assert_false(gpu_check_awaits_errors(check, &first, 1051));
}

CASE(nothing_starts_while_the_error_of_the_one_before_may_come)
{
    gpu.vendor = GPU_VENDOR_NVIDIA;
    (void)report(10);
    one_after_the_other();
    (void)report(10);
    assert_true(gpu_check_awaits_errors(check, &first, 1050));
    assert_int_equal(start(&second), -EALREADY);
    (void)report(10);
    assert_false(gpu_check_awaits_errors(check, &first, 1051));
    assert_int_equal(start(&second), 0);
}

CASE(a_look_that_never_comes_is_not_waited_for)
{
    gpu.vendor = GPU_VENDOR_NVIDIA;
    (void)report(10);
    one_after_the_other();
    assert_true(gpu_check_awaits_errors(check, &first, 1999));
    assert_false(gpu_check_awaits_errors(check, &first, 2000));
}

CASE(no_error_is_awaited_of_gpus_that_tell_of_none)
{
    one_after_the_other();
    assert_false(gpu_check_awaits_errors(check, &first, 1000));
    assert_false(gpu_check_awaits_errors(check, &(struct spool_id){ .job = 7 }, 1000));
}
