/* SPDX-License-Identifier: MIT */
/* A test for each rule about the requests of jobs. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/memory.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_two, bench_close)

int __real_parse_after(const char *text, struct ask_after **ret, size_t *ret_count, struct error *err);
int __wrap_parse_after(const char *text, struct ask_after **ret, size_t *ret_count, struct error *err);

static int one, two, three, four;
static size_t n_parsed; // lists of dependencies

int __wrap_parse_after(const char *text, struct ask_after **ret, size_t *ret_count, struct error *err)
{
    n_parsed++;
    return __real_parse_after(text, ret, ret_count, err);
}

static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
static const struct identity other = { .is_known = true, .uid = 1001, .gid = 1001 };
static const struct identity admin = { .is_known = true, .uid = 77, .role = ROLE_ADMIN };

static struct job_spec *make_spec(uint32_t gpus)
{
    struct job_spec *spec = bench_spec("true");
    spec->ask.gpus = gpus;
    return spec;
}

static void submit(struct bench *b, struct job_spec *spec, void *request)
{
    bench_submit_spec(b, &owner, spec, request);
}

static void end_job(struct bench *b, uint64_t job, enum job_end end, int exit_code)
{
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, job);
    assert_non_null(launch);
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    assert_int_equal(bench_exited(b, 1, launch, end, exit_code), 0);
    bench_settle(b);
}

static enum job_state state_of(struct bench *b, uint64_t job)
{
    return core_job(b->core, job)->state;
}

static void assert_waits_for(struct bench *b, uint64_t job, const char *reason)
{
    char text[256];
    assert_string_equal(
        core_wait_reason(b->core, b->now_ms, core_find(b->core, job), text, sizeof(text)), reason);
}

CASE(a_held_job_waits_until_it_is_released, b)
{
    struct job_spec *spec = make_spec(1);
    spec->hold = true;
    submit(b, spec, &one);
    assert_int_equal(state_of(b, 11), JOB_QUEUED);
    assert_waits_for(b, 11, "held_user");
    core_hold(b->core, b->now_ms, b->now_ms, &owner, 11, true, &two);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->code, 0);
    assert_int_equal(state_of(b, 11), JOB_STARTING);
}

/* Nor does one whose user said so; a batch script of Slurm may. */
CASE(a_job_with_somebody_at_its_other_end_never_borrows, b)
{
    static const struct {
        const char *kind, *input;
        bool is_tty, is_unwilling, no_restart;
    } rows[] = {
        { NULL },
        { "kind=sbatch" },
        { "kind=sbatch", .is_unwilling = true, .no_restart = true },
        { "kind=srun", .no_restart = true },
        { "kind=salloc", .no_restart = true },
        { .is_tty = true, .no_restart = true },
        { .input = SPEC_INPUT_SENT, .no_restart = true },
        { .input = "/dev/zero" },
    };
    char requests[sizeof(rows) / sizeof(rows[0])];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job_spec *spec = make_spec(1);
        if (rows[i].kind != NULL)
            strings_add(&spec->ask.slurm, rows[i].kind);
        spec->tty = rows[i].is_tty;
        spec->input = xstrdup(rows[i].input);
        spec->ask.no_restart = rows[i].is_unwilling;
        spec->hold = true; // the queue is short
        submit(b, spec, &requests[i]);
        const struct core_answer *answer = bench_answer(b, &requests[i]);
        if (answer->code != 0)
            fail_msg("%s", answer->err.message);
        assert_int_equal(core_job(b->core, answer->job)->ask->no_restart, rows[i].no_restart);
        core_cancel(b->core, b->now_ms, b->now_ms, &owner, answer->job, 0, NULL);
        bench_settle(b);
    }
}

CASE(the_hold_of_an_administrator_is_not_the_owners_to_take, b)
{
    submit(b, make_spec(2), &one);
    submit(b, make_spec(2), &two);
    core_hold(b->core, b->now_ms, b->now_ms, &admin, 12, false, NULL);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, 12, true, &three);
    core_hold(b->core, b->now_ms, b->now_ms, &other, 12, false, &four);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 12)->hold, HOLD_ADMIN);
    assert_int_equal(bench_answer(b, &three)->code, -EPERM);
    assert_int_equal(bench_answer(b, &four)->code, -EPERM);
}

CASE(a_job_that_runs_cannot_be_held_or_edited, b)
{
    submit(b, make_spec(1), &one);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, 11, false, &two);
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 11, core_job(b->core, 11)->ask, NULL, NULL, &three);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->code, -EALREADY);
    assert_int_equal(bench_answer(b, &three)->code, -EALREADY);
}

CASE(an_edit_can_let_a_job_start, b)
{
    submit(b, make_spec(1), &one);
    submit(b, make_spec(2), &two);
    assert_int_equal(state_of(b, 12), JOB_QUEUED);
    struct job_ask ask;
    job_ask_copy(&ask, core_job(b->core, 12)->ask);
    ask.gpus = 1;
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 12, &ask, "smaller", NULL, &three);
    bench_settle(b);
    job_ask_clear(&ask);
    assert_int_equal(bench_answer(b, &three)->code, 0);
    assert_int_equal(state_of(b, 12), JOB_STARTING);
    assert_string_equal(core_job(b->core, 12)->name, "smaller");
}

CASE(a_dependency_is_waited_for_and_may_never_come_true, b)
{
    submit(b, make_spec(1), &one);
    struct job_spec *after = make_spec(1), *never = make_spec(1);
    after->ask.after = xstrdup("11:fail");
    never->ask.after = xstrdup("11");
    submit(b, after, &two);
    submit(b, never, &three);
    assert_waits_for(b, 12, "dependency");
    end_job(b, 11, END_EXIT, 3);
    assert_int_equal(state_of(b, 12), JOB_STARTING);
    assert_int_equal(state_of(b, 13), JOB_QUEUED);
    assert_waits_for(b, 13, "dependency_never");
}

CASE(what_can_never_come_true_ends_the_jobs_that_asked_for_it, b)
{
    submit(b, make_spec(2), &one);
    const char *const after[] = { "11:ok", "12:ok", "13:ok" };
    for (size_t i = 0; i < 3; i++) {
        struct job_spec *spec = make_spec(1);
        spec->ask.after = xstrdup(after[i]);
        spec->ask.cancel_if_never = i < 2;
        spec->ask.array = i == 1 ? xstrdup("0-2") : NULL;
        submit(b, spec, NULL);
    }
    end_job(b, 11, END_EXIT, 3);
    for (uint64_t id = 12; id <= 13; id++) { // the second because of the first
        assert_int_equal(state_of(b, id), JOB_DONE);
        assert_int_equal(core_job(b->core, id)->end, END_DEPENDENCY);
    }
    assert_waits_for(b, 14, "dependency_never");
    /* Asked for afterwards. */
    struct job_ask ask;
    job_ask_copy(&ask, core_job(b->core, 14)->ask);
    ask.cancel_if_never = true;
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 14, &ask, NULL, NULL, &three);
    bench_settle(b);
    job_ask_clear(&ask);
    assert_int_equal(bench_answer(b, &three)->code, 0);
    assert_int_equal(core_job(b->core, 14)->end, END_DEPENDENCY);
}

CASE(a_job_that_waits_for_one_given_up_to_fail_starts, b)
{
    submit(b, make_spec(2), &one);
    struct job_spec *never = make_spec(1), *after = make_spec(1);
    never->ask.after = xstrdup("11:ok");
    never->ask.cancel_if_never = true;
    after->ask.after = xstrdup("12:fail");
    after->ask.cancel_if_never = true;
    submit(b, never, &two);
    submit(b, after, &three);
    end_job(b, 11, END_EXIT, 3);
    assert_int_equal(state_of(b, 12), JOB_DONE);
    assert_int_equal(state_of(b, 13), JOB_STARTING);
}

CASE(a_dependency_on_a_job_that_is_over_is_settled_at_once, b)
{
    struct core_fact fact = { .job = 3, .is_ok = true };
    struct core_facts facts = { &fact, 1 };
    struct job_spec *spec = make_spec(1), *unknown = make_spec(1);
    spec->ask.after = xstrdup("3:ok");
    unknown->ask.after = xstrdup("4:ok");
    core_submit(b->core, b->now_ms, b->now_ms, &owner, spec, &facts, &one);
    core_submit(b->core, b->now_ms, b->now_ms, &owner, unknown, &facts, &two);
    bench_settle(b);
    assert_int_equal(state_of(b, 11), JOB_STARTING);
    assert_int_equal(bench_answer(b, &two)->code, -EINVAL);
}

/* Returns how often its dependencies were parsed. */
static size_t submit_alike(struct bench *b, const char *after, void *request)
{
    struct job_spec *spec = make_spec(1);
    spec->name = xstrdup("chain");
    spec->hold = true;
    spec->ask.after = after != NULL ? xstrdup(after) : NULL;
    n_parsed = 0;
    submit(b, spec, request);
    return n_parsed;
}

CASE(a_singleton_parses_its_list_as_often_for_many_jobs_as_for_one, b)
{
    int ignored[8];
    b->options.queue_max = 20;
    bench_configure(b);
    (void)submit_alike(b, NULL, &one);
    size_t alone = submit_alike(b, "11:ok,singleton", &two);
    assert_true(alone > 0);
    for (size_t i = 0; i < 8; i++)
        (void)submit_alike(b, NULL, &ignored[i]);
    assert_int_equal(submit_alike(b, "19:fail,singleton,11:ok,13:start", &three), alone);
    assert_string_equal(core_job(b->core, 21)->ask->after,
        "19:fail,11:ok,13:start,12:any,14:any,15:any,16:any,17:any,18:any,20:any");
}

CASE(a_singleton_that_waits_for_too_many_jobs_is_refused, b)
{
    const struct core_facts unknown = { .may_lack = true };
    (void)submit_alike(b, NULL, &one);
    struct job_spec *spec = make_spec(1);
    _cleanup_buffer_ struct buffer after = { 0 };
    for (unsigned i = 1; i <= ASK_AFTER_MAX; i++)
        buffer_printf(&after, "%u,", 1000 + i);
    buffer_printf(&after, "singleton");
    spec->name = xstrdup("chain");
    spec->ask.after = buffer_take(&after);
    core_submit(b->core, b->now_ms, b->now_ms, &owner, spec, &unknown, &two);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->code, -E2BIG);
    assert_string_equal(bench_answer(b, &two)->err.message, "after: more than 1000 jobs");
}

CASE(an_edit_that_closes_a_circle_is_refused, b)
{
    struct job_spec *first = make_spec(1), *second = make_spec(1);
    first->hold = true;
    second->ask.after = xstrdup("11");
    submit(b, first, &one);
    submit(b, second, &two);
    struct job_ask ask;
    job_ask_copy(&ask, core_job(b->core, 11)->ask);
    ask.after = xstrdup("12");
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 11, &ask, NULL, NULL, &three);
    bench_settle(b);
    job_ask_clear(&ask);
    assert_int_equal(bench_answer(b, &three)->code, -ELOOP);
}

CASE(an_array_starts_so_many_elements_at_a_time_and_ends_with_the_last, b)
{
    struct job_spec *spec = make_spec(1);
    spec->ask.array = xstrdup("0-2%1");
    submit(b, spec, &one);
    assert_string_equal(core_job(b->core, 11)->array_left, "1-2");
    assert_int_equal(core_job(b->core, 12)->array_index, 0);
    assert_int_equal(state_of(b, 12), JOB_STARTING);
    end_job(b, 12, END_EXIT, 0);
    end_job(b, 13, END_EXIT, 7);
    assert_int_equal(state_of(b, 11), JOB_QUEUED);
    end_job(b, 14, END_EXIT, 0);
    assert_int_equal(state_of(b, 11), JOB_DONE);
    assert_int_equal(core_job(b->core, 11)->exit_code, 7);
}

CASE(a_cancelled_array_takes_its_elements_with_it, b)
{
    struct job_spec *spec = make_spec(1);
    spec->ask.array = xstrdup("0-9");
    submit(b, spec, &one);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, 0, &two);
    bench_settle(b);
    assert_int_equal(state_of(b, 12), JOB_STOPPING);
    assert_int_equal(state_of(b, 13), JOB_STOPPING);
    (void)bench_returned(b, 1, bench_sent(b, MESSAGE_LAUNCH, 12));
    (void)bench_returned(b, 1, bench_sent(b, MESSAGE_LAUNCH, 13));
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_CANCELLED);
}

CASE(an_element_that_waits_can_be_taken_out_of_its_array, b)
{
    struct job_spec *spec = make_spec(2);
    bool waits = false;
    spec->ask.array = xstrdup("0-3");
    submit(b, spec, &one);
    assert_int_equal(core_element(b->core, b->now_ms, b->now_ms, 11, 0, false, &waits), 12);
    assert_int_equal(core_element(b->core, b->now_ms, b->now_ms, 11, 3, false, &waits), 0);
    assert_true(waits);
    uint64_t element = core_element(b->core, b->now_ms, b->now_ms, 11, 3, true, &waits);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, element, 0, &two);
    bench_settle(b);
    assert_int_equal(state_of(b, element), JOB_DONE);
    assert_string_equal(core_job(b->core, 11)->array_left, "1-2");
}

static void hold_element(struct bench *b, uint64_t array, uint32_t index)
{
    bool waits = false;
    uint64_t element = core_element(b->core, b->now_ms, b->now_ms, array, index, true, &waits);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, element, false, &three);
    bench_settle(b);
}

/* Job 5 left memory long ago; the API looked it up for the submit. */
static void submit_array_after_5(struct bench *b, const char *after, bool is_ok)
{
    struct job_spec *spec = make_spec(2);
    struct core_fact fact = { 5, is_ok };
    struct core_facts facts = { .items = &fact, .count = 1 };
    spec->ask.array = xstrdup("0-3");
    spec->ask.after = xstrdup(after);
    core_submit(b->core, b->now_ms, b->now_ms, &owner, spec, &facts, &two);
    bench_settle(b);
}

CASE(an_array_does_not_wait_anew_when_an_element_is_taken_out, b)
{
    submit(b, make_spec(2), &one);
    submit_array_after_5(b, "5:ok", true);
    assert_waits_for(b, 12, "resources");
    hold_element(b, 12, 3);
    assert_int_equal(b->asked, 0);
    assert_waits_for(b, 12, "resources");
    assert_waits_for(b, 13, "held_user");
    end_job(b, 11, END_EXIT, 0);
    assert_int_equal(core_job(b->core, 14)->array_job, 12);
    assert_int_equal(state_of(b, 14), JOB_STARTING);
}

CASE(an_array_that_waits_for_what_never_comes_hears_it_once, b)
{
    submit_array_after_5(b, "5:fail", true);
    assert_waits_for(b, 11, "dependency_never");
    hold_element(b, 11, 3);
    assert_int_equal(b->asked, 0);
    assert_waits_for(b, 11, "dependency_never");
}

CASE(an_array_still_waits_for_what_runs_when_an_element_is_taken_out, b)
{
    submit(b, make_spec(1), &one);
    submit_array_after_5(b, "5:fail,11:any", false);
    hold_element(b, 12, 3);
    assert_int_equal(b->asked, 0);
    assert_waits_for(b, 12, "dependency");
    end_job(b, 11, END_EXIT, 0);
    assert_int_equal(state_of(b, 14), JOB_STARTING);
}

CASE(a_time_limit_that_its_shepherd_does_not_keep_is_kept_here, b)
{
    struct job_spec *spec = make_spec(1);
    spec->ask.time_limit_ms = 60000;
    submit(b, spec, &one);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    bench_pass(b, 61000); // its shepherd has its grace to end it
    assert_int_equal(state_of(b, 11), JOB_RUNNING);
    bench_pass(b, 35000);
    assert_int_equal(state_of(b, 11), JOB_STOPPING);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    (void)bench_exited(b, 1, launch, END_CANCELLED, 143);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_TIME_LIMIT);
    assert_int_equal(core_job(b->core, 11)->exit_code, 124);
}

/* Its shepherd died after it had reported the start and before the gate opened, and the node cannot say so
 * before mgpud stops the job. */
static void run_into_limit(struct bench *b)
{
    struct job_spec *spec = make_spec(1);
    spec->ask.time_limit_ms = 60000;
    submit(b, spec, &one);
    assert_int_equal(bench_started(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
    bench_settle(b);
    bench_pass(b, 100000);
    assert_int_equal(state_of(b, 11), JOB_STOPPING);
}

static void report_that_it_never_ran(struct bench *b)
{
    (void)bench_exited(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11), END_UNKNOWN, 0);
    bench_settle(b);
}

CASE(a_time_limit_does_not_apply_to_an_attempt_that_never_ran, b)
{
    run_into_limit(b);
    report_that_it_never_ran(b);
    assert_int_equal(state_of(b, 11), JOB_QUEUED);
    assert_waits_for(b, 11, "backoff");
    bench_pass(b, 60000);
    assert_int_equal(state_of(b, 11), JOB_STARTING);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, -1, &two);
    bench_settle(b);
    report_that_it_never_ran(b);
    assert_int_equal(core_job(b->core, 11)->end, END_CANCELLED);
}

CASE(a_cancel_after_a_stop_at_the_time_limit_counts_also_if_it_never_ran, b)
{
    run_into_limit(b);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, -1, &two);
    bench_settle(b);
    report_that_it_never_ran(b);
    assert_int_equal(state_of(b, 11), JOB_DONE);
}

CASE(a_deadline_ends_a_job_that_still_waits, b)
{
    struct job_spec *spec = make_spec(2), *late = make_spec(1);
    submit(b, make_spec(2), &one);
    spec->ask.deadline_ms = b->now_ms + 60000;
    late->ask.deadline_ms = b->now_ms - 1;
    submit(b, spec, &two);
    submit(b, late, &three);
    assert_int_equal(bench_answer(b, &three)->code, -EINVAL);
    bench_pass(b, 61000);
    assert_int_equal(core_job(b->core, 12)->end, END_DEADLINE);
    assert_int_not_equal(state_of(b, 11), JOB_DONE);
}

/* Its GPUs are free by then. */
CASE(a_deadline_that_passed_while_mgpud_was_away_ends_the_job, b)
{
    struct job_spec *spec = make_spec(2);
    submit(b, make_spec(2), &one);
    spec->ask.deadline_ms = b->now_ms + 60000;
    submit(b, spec, &two);
    b->now_ms += 61000;
    bench_restart(b, bench_stored(b, 12));
    assert_int_equal(core_job(b->core, 12)->end, END_DEADLINE);
}

/* Of two things that come at the same time, the deadline is first. */
CASE(gpus_that_are_free_at_the_deadline_are_too_late, b)
{
    struct job_spec *spec = make_spec(2);
    submit(b, make_spec(2), &one);
    spec->ask.deadline_ms = b->now_ms + 60000;
    submit(b, spec, &two);
    b->now_ms += 60001; // and no timer has come
    end_job(b, 11, END_EXIT, 0);
    assert_int_equal(core_job(b->core, 12)->end, END_DEADLINE);
}

/* What the scheduler missed meanwhile it does at its own time: here the GPUs are returned after the deadline.
 */
CASE(a_deadline_that_passes_while_mgpud_stands_still_is_before_what_came_later, b)
{
    char users[] = "1001";
    struct cluster_change reservation = { .gpus = 2, .users = users, .until_ms = b->now_ms + 60100 };
    struct job_spec *spec = make_spec(1);
    core_reserve(b->core, b->now_ms, b->now_ms, &admin, &reservation, &one);
    spec->ask.deadline_ms = b->now_ms + 60000;
    submit(b, spec, &two);
    assert_int_equal(state_of(b, 11), JOB_QUEUED);
    b->now_ms += 61000;
    submit(b, make_spec(0), &three);
    assert_int_equal(core_job(b->core, 11)->attempt, 0);
    assert_int_equal(core_job(b->core, 11)->end, END_DEADLINE);
}

/* The end of one is the end of the other, in the same turn and at its time. */
CASE(what_waits_for_a_job_that_missed_its_deadline_ends_with_it, b)
{
    struct job_spec *late = make_spec(0), *after = make_spec(0);
    late->hold = true;
    late->ask.deadline_ms = b->now_ms + 60000;
    submit(b, late, &one);
    after->ask.after = xstrdup("11:ok");
    after->ask.cancel_if_never = true;
    submit(b, after, &two);
    b->now_ms += 60001; // and no timer has come
    submit(b, make_spec(0), &three);
    assert_int_equal(core_job(b->core, 11)->end, END_DEADLINE);
    assert_int_equal(core_job(b->core, 12)->end, END_DEPENDENCY);
    assert_int_equal(core_job(b->core, 12)->ended_ms, core_job(b->core, 11)->ended_ms);
}

CASE(a_begin_time_is_waited_for, b)
{
    struct job_spec *spec = make_spec(1);
    spec->ask.begin_ms = b->now_ms + 60000;
    submit(b, spec, &one);
    assert_waits_for(b, 11, "begin_time");
    bench_pass(b, 61000);
    assert_int_equal(state_of(b, 11), JOB_STARTING);
}

CASE(a_preemptible_job_gives_way_and_comes_back, b)
{
    struct job_spec *spec = make_spec(2);
    spec->ask.preemptible = true;
    submit(b, spec, &one);
    const struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_int_equal(bench_started(b, 1, &launch), 0);
    bench_settle(b);
    bench_pass(b, 120000); // longer than the quantum
    submit(b, make_spec(2), &two);
    assert_int_equal(state_of(b, 11), JOB_STOPPING);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    (void)bench_exited(b, 1, &launch, END_CANCELLED, 143);
    bench_settle(b);
    assert_int_equal(state_of(b, 11), JOB_QUEUED);
    assert_int_equal(core_job(b->core, 11)->preemptions, 1);
    assert_int_equal(state_of(b, 12), JOB_STARTING);
}

CASE(a_paused_gpu_gets_no_job_until_its_time_is_over, b)
{
    char zero[] = "0", one_gpu[] = "box:1";
    char *items[] = { zero, one_gpu, NULL };
    struct strings gpus = { items, 2 };
    core_pause(b->core, b->now_ms, b->now_ms, &owner, &gpus, "no", 0, GPU_ACTION_PAUSE, &one);
    core_pause(
        b->core, b->now_ms, b->now_ms, &admin, &gpus, "fan", b->now_ms + 60000, GPU_ACTION_PAUSE, &two);
    submit(b, make_spec(1), &three);
    assert_int_equal(bench_answer(b, &one)->code, -EPERM);
    assert_int_equal(bench_answer(b, &two)->code, 0);
    assert_int_equal(state_of(b, 11), JOB_QUEUED);
    assert_string_equal(core_find_gpu(core_node_named(b->core, "box"), "GPU-1")->mark->text, "fan");
    bench_pass(b, 61000);
    assert_null(core_find_gpu(core_node_named(b->core, "box"), "GPU-1")->mark);
    assert_int_equal(state_of(b, 11), JOB_STARTING);
}

CASE(a_drained_node_gets_no_job, b)
{
    core_drain(b->core, b->now_ms, b->now_ms, &admin, "box", "new kernel", 0, false, &one);
    core_drain(b->core, b->now_ms, b->now_ms, &admin, "moon", NULL, 0, false, &two);
    submit(b, make_spec(1), &three);
    assert_int_equal(state_of(b, 11), JOB_QUEUED);
    assert_waits_for(b, 11, "node_drained");
    assert_int_equal(bench_answer(b, &two)->code, -ENOENT);
    core_drain(b->core, b->now_ms, b->now_ms, &admin, "box", NULL, 0, true, &four);
    bench_settle(b);
    assert_int_equal(state_of(b, 11), JOB_STARTING);
}

CASE(reserved_gpus_are_for_their_users, b)
{
    char users[] = "1001";
    struct cluster_change reservation = { .gpus = 2, .users = users, .until_ms = b->now_ms + 600000 };
    core_reserve(b->core, b->now_ms, b->now_ms, &owner, &reservation, &one);
    core_reserve(b->core, b->now_ms, b->now_ms, &admin, &reservation, &two);
    submit(b, make_spec(1), &three);
    assert_int_equal(bench_answer(b, &one)->code, -EPERM);
    assert_int_equal(bench_answer(b, &two)->job, 1);
    assert_int_equal(state_of(b, 11), JOB_QUEUED);
    bench_submit(b, 1001, 1, NULL, &four);
    bench_settle(b);
    assert_int_equal(state_of(b, 12), JOB_STARTING);
    core_unreserve(b->core, b->now_ms, b->now_ms, &admin, 1, NULL);
    bench_settle(b);
    assert_int_equal(state_of(b, 11), JOB_STARTING);
}

CASE(a_priority_counts_among_the_owners_jobs_unless_the_caller_may_give_it, b)
{
    struct job_spec *spec = make_spec(1), *allowed = make_spec(1), *low = make_spec(1);
    struct identity raiser = owner;
    raiser.may_raise = true;
    spec->ask.priority = allowed->ask.priority = 5;
    low->ask.priority = -5;
    submit(b, spec, &one);
    core_submit(b->core, b->now_ms, b->now_ms, &raiser, allowed, NULL, &two);
    submit(b, low, &three);
    bench_settle(b);
    const struct job *own = core_job(b->core, bench_answer(b, &one)->job);
    assert_int_equal(own->ask->priority, 5);
    assert_true(own->ask->own_priority);
    assert_false(core_job(b->core, bench_answer(b, &two)->job)->ask->own_priority);
    assert_false(core_job(b->core, bench_answer(b, &three)->job)->ask->own_priority);
}

static bool edited(struct bench *b, uint64_t job, const struct identity *who, int32_t priority)
{
    static int requests[BENCH_MAX];
    struct job_ask ask;
    job_ask_copy(&ask, core_job(b->core, job)->ask);
    ask.priority = priority;
    core_edit(b->core, b->now_ms, b->now_ms, who, job, &ask, NULL, NULL, &requests[b->n_answers]);
    job_ask_clear(&ask);
    bench_settle(b);
    assert_int_equal(core_job(b->core, job)->ask->priority, priority);
    return core_job(b->core, job)->ask->own_priority;
}

CASE(an_edit_makes_a_priority_one_of_all_only_by_those_who_may, b)
{
    struct job_spec *spec = make_spec(1);
    spec->hold = true;
    spec->ask.priority = 5;
    submit(b, spec, &one);
    bench_settle(b);
    uint64_t job = bench_answer(b, &one)->job;
    assert_true(edited(b, job, &owner, 900));
    assert_false(edited(b, job, &admin, 9));
    assert_false(edited(b, job, &owner, 8)); // lower than what was given
    assert_true(edited(b, job, &owner, 10));
    assert_false(edited(b, job, &owner, -1));
}

CASE(jobs_of_one_command_have_one_stem, b)
{
    static const char *const lines[][2] = {
        { "/usr/bin/python train.py --lr 0.1", "python ./train.py --lr 0.2" },
        { "/bin/sh -c 'cd x; sleep 1'", "cd y" },
        { "env A=1 ./run.sh 3", "/opt/run.sh 4" },
        { "bash -c 'python train.py'", "python train.py" },
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct job left = { .summary = xstrdup(lines[i][0]) }, right = { .summary = xstrdup(lines[i][1]) };
        assert_int_equal(core_command_hash(&left), core_command_hash(&right));
        free(left.summary);
        free(right.summary);
    }
    struct job eval = { .summary = xstrdup("python eval.py") },
               train = { .summary = xstrdup("python train.py") };
    assert_int_not_equal(core_command_hash(&eval), core_command_hash(&train));
    free(eval.summary);
    free(train.summary);
}

CASE(two_turns_never_have_the_same_time, b)
{
    submit(b, make_spec(0), &one);
    int64_t first = core_job(b->core, 11)->submitted_ms;
    b->now_ms -= 1000; // the wall clock is set back
    core_submit(b->core, b->now_ms + 2000, b->now_ms, &owner, make_spec(0), NULL, &two);
    assert_true(core_job(b->core, 12)->submitted_ms > first);
}
