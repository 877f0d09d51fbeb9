/* SPDX-License-Identifier: MIT */
/* What the record of a job keeps of the scheduler's own rule of parking: how long it ran and waited, and what
 * stays booked; and of a start before its GPUs are free. Times are in seconds after the epoch of the test. */
#include <stdlib.h>

#include "base/memory.h"
#include "job/job.h"
#include "unit_test.h"

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

/* Queued, on one GPU. */
static struct job *make_queued(void)
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
    return job;
}

static void allocate(struct job *job, bool is_early)
{
    struct job_event allocated = {
        .type = EVENT_ALLOCATED, .token = 7, .cpu_milli = 4000, .memory = 8 * GIB, .is_early = is_early
    };
    allocated.node = xstrdup("box");
    allocated.boot_id = xstrdup("boot");
    gpu_grants_add(&allocated.gpus, 0, "GPU-0", 0, 0);
    apply(job, allocated, 90);
}

static void start(struct job *job)
{
    apply(job, (struct job_event){ .type = EVENT_STARTED }, 100);
}

/* It runs since 100, with 4 CPUs and 8 GiB. */
static int make_job(void **state)
{
    *state = make_queued();
    allocate(*state, false);
    start(*state);
    return 0;
}

/* The same, without its GPU. */
static int make_early(void **state)
{
    *state = make_queued();
    allocate(*state, true);
    start(*state);
    return 0;
}

static int free_job(void **state)
{
    job_free(*state);
    return 0;
}

#define CASE(name, job) TEST_ON(name, struct job *job, make_early, free_job)

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

TEST_ON(its_cpus_and_host_memory_stay_booked_and_its_times_add_up, struct job *job, make_job, free_job)
{
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

TEST_ON(a_return_that_fails_is_more_waiting, struct job *job, make_job, free_job)
{
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

TEST_ON(a_refusal_changes_nothing, struct job *job, make_job, free_job)
{
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

TEST_ON(a_park_by_somebody_else_begins_anew, struct job *job, make_job, free_job)
{
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

TEST_ON(a_user_may_keep_it_parked, struct job *job, make_job, free_job)
{
    park(job, PARK_SHORTER, 200, 200);
    apply(job, (struct job_event){ .type = EVENT_PARK, .park_cause = PARK_ASKED }, 210);
    assert_int_equal(job_park(job)->phase, PARK_PARKED);
    assert_true(job_is_owed(job));
    apply(job, (struct job_event){ .type = EVENT_UNPARK }, 220);
    return_at(job, 230, 230);
    assert_times(job, 100, 30, 230);
}

/* --- an early start --- */

static void assert_kept(const struct job *job, uint32_t cpu_milli, uint64_t kept, uint64_t parked)
{
    assert_int_equal(job_park(job)->kept_cpu_milli, cpu_milli);
    assert_int_equal(job_park(job)->kept_memory, kept);
    assert_int_equal(job_park(job)->memory, parked);
}

CASE(it_has_its_cpus_outside_the_ledger_from_its_start_to_its_end, job)
{
    assert_true(job_is_early(job) && job_is_parked(job) && !job_is_stopped(job) && !job_holds_gpus(job));
    assert_kept(job, 4000, 8 * GIB, 0);
    assert_int_equal(job_early_ms(job, 130000), 30000);
    struct job_event granted = { .type = EVENT_UNPARKED, .waited_ms = 10000 };
    restore(job, 140);
    assert_true(job_is_early(job) && job_holds_gpus(job));
    apply(job, granted, 141);
    granted.wall_ms = 141000;
    assert_true(job_early_is_over(job, &granted) && !job_park_is_over(job, &granted));
    assert_true(job_holds_gpus(job) && !job_is_early(job));
    assert_int_equal(job_park(job)->early_ms, 41000);
    assert_int_equal(job_park(job)->saved_ms, 31000);
    assert_int_equal(job_early_ms(job, 500000), 41000);
    assert_kept(job, 4000, 8 * GIB, 0);
    apply(job, (struct job_event){ .type = EVENT_ENDED, .end = END_EXIT }, 200);
    assert_kept(job, 0, 0, 0);
    assert_int_equal(job_park(job)->granted_ms, 141000); // what is shown of it stays
}

/* It waits for longer than it ran: clocks of two machines, or a report that was late. */
CASE(it_saves_no_less_than_nothing, job)
{
    restore(job, 110);
    apply(job, (struct job_event){ .type = EVENT_UNPARKED, .waited_ms = 999999 }, 111);
    assert_int_equal(job_park(job)->saved_ms, 0);
    assert_int_equal(job_park(job)->early_ms, 11000);
}

CASE(a_refused_grant_leaves_it_early, job)
{
    struct job_event refused = { .type = EVENT_PARKED };
    restore(job, 110);
    refused.text = xstrdup("its filter cannot be changed");
    apply(job, refused, 112);
    assert_true(job_is_early(job) && !job_holds_gpus(job) && !job_is_stopped(job));
    assert_kept(job, 4000, 8 * GIB, 0);
    return_at(job, 120, 121);
    assert_int_equal(job_park(job)->early_ms, 21000);
}

CASE(one_that_is_parked_before_its_grant_is_stopped_and_early_again_afterwards, job)
{
    uint32_t terms = job_run(job)->terms;
    apply(job, (struct job_event){ .type = EVENT_PARK, .park_cause = PARK_ASKED }, 110);
    assert_true(job_is_stopped(job));
    assert_int_equal(job_run(job)->terms, terms + 1); // its node is told
    assert_kept(job, 4000, 8 * GIB, 0);
    apply(job, (struct job_event){ .type = EVENT_UNPARK }, 120);
    assert_true(!job_is_stopped(job) && job_is_early(job));
    assert_int_equal(job_run(job)->terms, terms + 2);
}

CASE(one_that_is_parked_after_its_grant_leaves_its_cpus, job)
{
    return_at(job, 110, 111);
    park(job, PARK_ASKED, 120, 121);
    assert_kept(job, 0, 0, 8 * GIB);
    assert_int_equal(job_run(job)->cpu_milli, 0);
    apply(job, (struct job_event){ .type = EVENT_UNPARK }, 130);
    return_at(job, 140, 141);
    assert_kept(job, 0, 0, 8 * GIB);
    assert_int_equal(job_park(job)->early_ms, 11000); // the park is none
}

CASE(it_asks_for_exactly_its_gpus_and_its_whole_time, job)
{
    struct job_ask ask, wanted = *job->ask;
    wanted.time_limit_ms = 60000;
    wanted.cpu_milli = 4000;
    wanted.park_anywhere = true;
    job_set_ask(job, &wanted);
    assert_false(job_park_may_move(job));
    job_park_ask(job, NULL, &ask);
    assert_string_equal(ask.gpu_ids, "box:0");
    assert_int_equal(ask.time_limit_ms, 60000);
    assert_int_equal(ask.cpu_milli, 0);
    assert_int_equal(ask.memory, 0);
    free(ask.gpu_ids);
}

/* The scheduler has it as soon as it is allocated. */
TEST(it_does_so_before_its_start_is_reported)
{
    struct job *job = make_queued();
    struct job_ask ask, wanted = *job->ask;
    wanted.time_limit_ms = 60000;
    job_set_ask(job, &wanted);
    allocate(job, true);
    job_park_ask(job, NULL, &ask);
    assert_int_equal(ask.time_limit_ms, 60000);
    free(ask.gpu_ids);
    job_free(job);
}

static void apply_to(struct job *job, uint32_t attempt, struct job_event event)
{
    struct error err = { 0 };
    event.job = 42;
    event.attempt = attempt;
    event.wall_ms = 200000;
    assert_int_equal(job_apply(job, &event, &err), 0);
    assert_int_equal(job_invariant(job, &err), 0);
    job_event_clear(&event);
}

/* And only that of a parked job. */
TEST(a_preemption_for_a_parked_job_is_kept_over_all_attempts)
{
    for (int is_early = 0; is_early <= 1; is_early++)
        for (uint32_t cause = PARK_ASKED; cause <= PARK_DUE; cause++) {
            struct job *job = make_queued();
            bool is_due = cause == PARK_DUE;
            allocate(job, false);
            start(job);
            apply(job, (struct job_event){ .type = EVENT_PREEMPTED, .park_cause = cause, .park_guest = 43 },
                150);
            apply(job, (struct job_event){ .type = EVENT_REQUEUED, .end = END_CANCELLED }, 160);
            assert_int_equal(job_was_reclaimed(job), is_due);
            struct job_event again = { .type = EVENT_ALLOCATED, .token = 8, .is_early = (uint32_t)is_early };
            again.node = xstrdup("box");
            gpu_grants_add(&again.gpus, 0, "GPU-0", 0, 0);
            apply_to(job, 2, again);
            apply_to(job, 2, (struct job_event){ .type = EVENT_ENDED, .end = END_EXIT });
            assert_int_equal(job_park(job)->reclaimed, is_due ? 1 : 0);
            assert_int_equal(job_park(job)->lender, is_due ? 43 : 0);
            job_free(job);
        }
}

TEST_WITH(only_a_job_with_gpus_on_one_node_starts_early, make_early, free_job)
{
    struct job *job = make_queued();
    struct job_event allocated = { .job = 42,
        .attempt = 1,
        .type = EVENT_ALLOCATED,
        .token = 7,
        .is_early = 1,
        .node = xstrdup("box"),
        .boot_id = xstrdup("boot") };
    struct error err = { 0 };
    assert_int_not_equal(job_apply(job, &allocated, &err), 0);
    gpu_grants_add(&allocated.gpus, 0, "GPU-0", 0, 0);
    job_nodes_add(&allocated.nodes, "box", "boot");
    job_nodes_add(&allocated.nodes, "other", "boot");
    assert_int_not_equal(job_apply(job, &allocated, &err), 0);
    assert_int_equal(job->state, JOB_QUEUED);
    job_event_clear(&allocated);
    job_free(job);
    job = *state;
    struct job_event named = {
        .job = 42, .attempt = 1, .type = EVENT_PARK, .park_cause = PARK_EARLY, .wall_ms = 110000
    };
    assert_int_not_equal(job_apply(job, &named, &err), 0); // nobody is parked for that
}
