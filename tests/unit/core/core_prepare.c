/* SPDX-License-Identifier: MIT */
/* Which job is prepared, where, and when that is taken back. Node "box" has one GPU. */
#include "bench.h"

#include "base/memory.h"

#define CASE(name) TEST_WITH(name, NULL, bench_close)

#define WRONG_MS 250 // until the guess after a wrong one

static int one, two, three, four;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
static const struct identity admin = { .is_known = true, .uid = 77, .role = ROLE_ADMIN };

static struct bench *open_with(void **state, uint32_t gpus)
{
    (void)bench_open(state);
    assert_int_equal(bench_hello(*state, 1, "boot", gpus, NULL, 0), 0);
    return *state;
}

static void submit(struct bench *b, uint32_t gpus, int32_t priority, void *request)
{
    struct job_spec *spec = bench_spec("true");
    spec->ask.gpus = gpus;
    spec->ask.priority = priority;
    core_submit(b->core, b->now_ms, b->now_ms, priority != 0 ? &admin : &owner, spec, NULL, request);
    bench_settle(b);
}

static void end_job(struct bench *b, uint64_t job)
{
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, job);
    assert_int_equal(bench_started(b, 1, launch), 0);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_pass(b, 10);
}

static size_t count_prepared(const struct bench *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->n_sent; i++)
        count += b->sent[i].id == MESSAGE_PREPARE;
    return count;
}

CASE(next_job_is_prepared_and_launched_as_that)
{
    struct bench *b = open_with(state, 1);
    submit(b, 1, 0, &one);
    assert_int_equal(count_prepared(b), 0);
    submit(b, 1, 0, &two);
    submit(b, 1, 0, &three);
    assert_int_equal(count_prepared(b), 1);
    const struct sent *guess = bench_sent(b, MESSAGE_PREPARE, 12);
    assert_non_null(guess);
    assert_int_equal(guess->attempt, 1);
    assert_int_equal(guess->n_gpus, 1);
    assert_true(guess->has_spec);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
    end_job(b, 11);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 12);
    assert_non_null(launch);
    assert_int_equal(launch->attempt, 1);
    assert_true(launch->token == guess->token);
    assert_true(launch->order > guess->order);
    assert_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 12));
    assert_non_null(bench_sent(b, MESSAGE_PREPARE, 13));
}

CASE(it_is_launched_only_when_its_allocation_is_durable)
{
    struct bench *b = open_with(state, 1);
    submit(b, 1, 0, &one);
    submit(b, 1, 0, &two);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_int_equal(bench_started(b, 1, launch), 0);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    b->now_ms += 10;
    bench_turn(b);
    assert_int_equal(core_job(b->core, 12)->state, JOB_STARTING);
    assert_null(bench_sent(b, MESSAGE_LAUNCH, 12));
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, 12));
}

CASE(a_job_that_comes_before_it_takes_its_place)
{
    struct bench *b = open_with(state, 1);
    submit(b, 1, 0, &one);
    submit(b, 1, 0, &two);
    submit(b, 1, 5, &three);
    const struct sent *withdrawn = bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 12);
    assert_non_null(withdrawn);
    assert_true(withdrawn->token == bench_sent(b, MESSAGE_PREPARE, 12)->token);
    assert_null(bench_sent(b, MESSAGE_PREPARE, 13)); // not at once: the next guess may be as wrong
    bench_pass(b, WRONG_MS);
    submit(b, 1, 0, &four);
    assert_non_null(bench_sent(b, MESSAGE_PREPARE, 13));
    end_job(b, 11);
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, 13));
}

CASE(a_cancelled_or_held_job_is_not_prepared_any_more)
{
    for (int is_hold = 0; is_hold < 2; is_hold++) {
        struct bench *b = open_with(state, 1);
        submit(b, 1, 0, &one);
        submit(b, 1, 0, &two);
        if (is_hold)
            core_hold(b->core, b->now_ms, b->now_ms, &owner, 12, false, &three);
        else
            core_cancel(b->core, b->now_ms, b->now_ms, &owner, 12, -1, &three);
        bench_settle(b);
        assert_non_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 12));
        if (!is_hold) {
            (void)bench_close(state);
            continue;
        }
        end_job(b, 11);
        assert_null(bench_sent(b, MESSAGE_LAUNCH, 12));
    }
}

CASE(which_of_several_gpus_is_free_first_is_not_guessed)
{
    struct bench *b = open_with(state, 2);
    submit(b, 1, 0, &one);
    submit(b, 1, 0, &two);
    submit(b, 1, 0, &three);
    assert_int_equal(count_prepared(b), 0);
}

CASE(another_request_than_that_of_the_running_job_is_not_guessed)
{
    struct bench *b = open_with(state, 2);
    submit(b, 2, 0, &one);
    submit(b, 1, 0, &two);
    assert_int_equal(count_prepared(b), 0);
}

CASE(nothing_is_prepared_for_a_drained_node)
{
    struct bench *b = open_with(state, 1);
    submit(b, 1, 0, &one);
    submit(b, 1, 0, &two);
    core_drain(b->core, b->now_ms, b->now_ms, &admin, "box", "test", 0, false, &three);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 12));
    bench_pass(b, WRONG_MS);
    submit(b, 1, 0, &four);
    assert_int_equal(count_prepared(b), 1);
}

CASE(a_node_that_comes_back_is_told_anew)
{
    struct bench *b = open_with(state, 1);
    submit(b, 1, 0, &one);
    submit(b, 1, 0, &two);
    uint64_t token = bench_sent(b, MESSAGE_PREPARE, 12)->token;
    const struct sent *running = bench_sent(b, MESSAGE_LAUNCH, 11);
    const struct known_attempt known = { { 11, 1, 0, 0 }, running->token, PHASE_RUNNING };
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    bench_settle(b);
    assert_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 12)); // the agent drops it by itself
    assert_int_equal(bench_hello(b, 2, "boot", 1, &known, 1), 0);
    submit(b, 1, 0, &three);
    const struct sent *again = bench_sent(b, MESSAGE_PREPARE, 12);
    assert_int_equal(again->link, 2);
    assert_true(again->token != token);
}
