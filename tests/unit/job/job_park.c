/* SPDX-License-Identifier: MIT */
/* What the record of a job keeps of the scheduler's own rule of parking: how long it ran and waited, and what
 * stays booked. Times are in seconds after the epoch of the test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/memory.h"
#include "job/job.h"

#define GIB (1ULL << 30)

static void apply(struct job *job, struct job_event event, int64_t at_s)
{
    struct error err = { 0 };
    event.job = 42;
    event.attempt = 1;
    event.wall_ms = at_s * 1000;
    assert_int_equal(job_apply(job, &event, &err), 0);
    assert_int_equal(job_invariant(job, &err), 0);
    job_event_clear(&event);
}

/* It runs since 100, with 4 CPUs and 8 GiB. */
static int make_job(void **state)
{
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "train");
    spec.cwd = xstrdup("/");
    spec.ask.gpus = 1;
    struct job *job = job_new(42, &spec);
    job_spec_clear(&spec);
    struct job_event submitted = { .job = 42, .type = EVENT_SUBMITTED, .wall_ms = 1, .uid = 1000 };
    assert_int_equal(job_apply(job, &submitted, NULL), 0);
    struct job_event allocated = {
        .type = EVENT_ALLOCATED, .token = 7, .cpu_milli = 4000, .memory = 8 * GIB
    };
    allocated.node = xstrdup("box");
    allocated.boot_id = xstrdup("boot");
    gpu_grants_add(&allocated.gpus, 0, "GPU-0", 0, 0);
    apply(job, allocated, 90);
    apply(job, (struct job_event){ .type = EVENT_STARTED }, 100);
    *state = job;
    return 0;
}

static int free_job(void **state)
{
    job_free(*state);
    return 0;
}

static void park(struct job *job, uint32_t cause, int64_t from_s, int64_t parked_s)
{
    apply(job, (struct job_event){ .type = EVENT_PARK, .park_cause = cause, .park_guest = 50 }, from_s);
    apply(job, (struct job_event){ .type = EVENT_PARKED }, parked_s);
}

static void restore(struct job *job, int64_t from_s)
{
    struct job_event restoring = { .type = EVENT_RESTORING, .cpu_milli = 4000 };
    gpu_grants_add(&restoring.gpus, 0, "GPU-0", 0, 0);
    apply(job, restoring, from_s);
}

static void return_at(struct job *job, int64_t from_s, int64_t back_s)
{
    restore(job, from_s);
    apply(job, (struct job_event){ .type = EVENT_UNPARKED }, back_s);
}

static void assert_times(const struct job *job, int64_t ran_s, int64_t waited_s, int64_t back_s)
{
    assert_int_equal(job_park(job)->ran_ms, ran_s * 1000);
    assert_int_equal(job_park(job)->waited_ms, waited_s * 1000);
    assert_int_equal(job_park(job)->back_ms, back_s * 1000);
}

static void its_cpus_and_host_memory_stay_booked_and_its_times_add_up(void **state)
{
    struct job *job = *state;
    park(job, PARK_SHORTER, 200, 202);
    assert_int_equal(job_park(job)->phase, PARK_WAITING);
    assert_int_equal(job_park(job)->guest, 50);
    assert_true(job_is_owed(job) && job_is_parked(job) && job_park_may_move(job));
    assert_int_equal(job_run(job)->cpu_milli, 4000);
    assert_true(job_run(job)->memory == 8 * GIB && job_park(job)->memory == 0);
    assert_times(job, 102, 0, 0);
    return_at(job, 300, 303);
    assert_false(job_is_owed(job));
    assert_times(job, 102, 101, 303);
    park(job, PARK_DUE, 400, 401);
    assert_times(job, 200, 101, 303);
    return_at(job, 410, 411);
    assert_times(job, 200, 111, 411);
    assert_int_equal(job_parked_ms(job, 500000), 111000);
}

static void a_return_that_fails_is_more_waiting(void **state)
{
    struct job *job = *state;
    park(job, PARK_SHORTER, 199, 200);
    restore(job, 210);
    struct job_event refused = { .type = EVENT_PARKED };
    refused.text = xstrdup("something is on its GPUs");
    apply(job, refused, 212);
    assert_true(job_is_owed(job));
    assert_int_equal(job_park(job)->since_ms, 200000);
    assert_times(job, 100, 0, 0);
    return_at(job, 220, 221);
    assert_times(job, 100, 21, 221);
}

static void a_refusal_changes_nothing(void **state)
{
    struct job *job = *state;
    struct job_event refused = { .type = EVENT_UNPARKED };
    refused.text = xstrdup("it uses MIG");
    apply(job, (struct job_event){ .type = EVENT_PARK, .park_cause = PARK_SHORTER, .park_guest = 50 }, 200);
    struct job_event seen = { .type = EVENT_UNPARKED, .wall_ms = 201000 };
    apply(job, refused, 201);
    assert_true(job_park_was_refused(job, &seen));
    assert_times(job, 0, 0, 0);
    assert_true(job_holds_gpus(job) && !job_is_owed(job));
    park(job, PARK_SHORTER, 300, 300);
    return_at(job, 310, 310);
    seen.wall_ms = 310000;
    assert_false(job_park_was_refused(job, &seen));
}

static void a_park_by_somebody_else_begins_anew(void **state)
{
    struct job *job = *state;
    park(job, PARK_SHORTER, 200, 200);
    return_at(job, 300, 300);
    park(job, PARK_ASKED, 400, 400);
    assert_false(job_is_owed(job) || job_park_may_move(job));
    assert_int_equal(job_run(job)->cpu_milli, 0);
    assert_true(job_run(job)->memory == 0 && job_park(job)->memory == 8 * GIB);
    assert_times(job, 0, 0, 300);
    apply(job, (struct job_event){ .type = EVENT_UNPARK }, 500);
    return_at(job, 600, 600);
    assert_times(job, 0, 0, 600);
    park(job, PARK_SHORTER, 650, 650);
    assert_times(job, 50, 0, 600);
}

static void a_user_may_keep_it_parked(void **state)
{
    struct job *job = *state;
    park(job, PARK_SHORTER, 200, 200);
    apply(job, (struct job_event){ .type = EVENT_PARK, .park_cause = PARK_ASKED }, 210);
    assert_int_equal(job_park(job)->phase, PARK_PARKED);
    assert_true(job_is_owed(job));
    apply(job, (struct job_event){ .type = EVENT_UNPARK }, 220);
    return_at(job, 230, 230);
    assert_times(job, 100, 30, 230);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            its_cpus_and_host_memory_stay_booked_and_its_times_add_up, make_job, free_job),
        cmocka_unit_test_setup_teardown(a_return_that_fails_is_more_waiting, make_job, free_job),
        cmocka_unit_test_setup_teardown(a_refusal_changes_nothing, make_job, free_job),
        cmocka_unit_test_setup_teardown(a_park_by_somebody_else_begins_anew, make_job, free_job),
        cmocka_unit_test_setup_teardown(a_user_may_keep_it_parked, make_job, free_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
