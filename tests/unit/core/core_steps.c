/* SPDX-License-Identifier: MIT */
/* Steps of a running job: their numbers, their shares, which of them wait, and when a step ends without a
 * report. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/step.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_two, bench_close)

#define JOB 11

void __real_store_batch_put(
    struct store_batch *batch, const char *kind, const char *key, const struct buffer *value);
void __wrap_store_batch_put(
    struct store_batch *batch, const char *kind, const char *key, const struct buffer *value);

static size_t n_stored; // rows of steps

void __wrap_store_batch_put(
    struct store_batch *batch, const char *kind, const char *key, const struct buffer *value)
{
    n_stored += strcmp(kind, "steps") == 0;
    __real_store_batch_put(batch, kind, key, value);
}

static int submitting, one, two, three, four, five;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
static const struct identity other = { .is_known = true, .uid = 1001, .gid = 1001 };

/* Job 11 runs with two GPUs and two tasks of one CPU. */
static const struct sent *run_job(struct bench *b)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.gpus = 2;
    strings_add(&spec->ask.slurm, "ntasks=2");
    bench_submit_spec(b, &owner, spec, &submitting);
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, JOB);
    assert_int_equal(bench_started(b, 1, launch), 0);
    b->now_ms += 10; // a start may be committed late
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    return launch;
}

struct step_request {
    const char *key;
    uint32_t tasks, gpus;
    bool exact, overlap, is_resumed;
};

static void begin(
    struct bench *b, const struct identity *who, struct step_request step_request, void *request)
{
    char node[] = "box";
    struct job_step_node place = { .node = node, .tasks = step_request.tasks, .gpus = step_request.gpus };
    _cleanup_free_ char *key = xstrdup(step_request.key);
    const struct job_step step = { .key = key,
        .exact = step_request.exact,
        .overlap = step_request.overlap,
        .nodes = { .items = &place, .count = 1 } };
    b->now_ms += 10;
    core_step_begin(b->core, b->now_ms, b->now_ms, who, JOB, &step, step_request.is_resumed, request);
}

static void finish(struct bench *b, uint32_t id, void *request)
{
    const struct job_step how = { .id = id, .end = END_EXIT };
    b->now_ms += 10;
    core_step_end(b->core, b->now_ms, b->now_ms, &owner, JOB, &how, request);
    bench_settle(b);
}

static const char *places(const struct bench *b, uint32_t id)
{
    const struct job_step *step = core_step(b->core, JOB, id);
    return ((const struct job_step_node *)step->nodes.items)->gpu_places;
}

CASE(a_step_is_numbered_and_answered_when_it_is_durable, b)
{
    (void)run_job(b);
    begin(b, &owner, (struct step_request){ .tasks = 2 }, &two);
    bench_turn(b);
    assert_null(bench_answer(b, &two));
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->code, 0);
    assert_int_equal(bench_answer(b, &two)->step, 0);
    finish(b, 0, &three);
    assert_int_equal(bench_answer(b, &three)->code, 0);
    begin(b, &owner, (struct step_request){ .tasks = 1 }, &four);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &four)->step, 1);
}

CASE(a_step_waits_until_the_one_before_it_has_ended, b)
{
    (void)run_job(b);
    begin(b, &owner, (struct step_request){ .tasks = 1 }, &two);
    begin(b, &owner, (struct step_request){ .tasks = 1 }, &three);
    bench_settle(b);
    assert_non_null(bench_answer(b, &two));
    assert_null(bench_answer(b, &three));
    finish(b, 0, &four);
    assert_int_equal(bench_answer(b, &three)->step, 1);
}

CASE(exact_steps_run_together_while_there_are_cpus, b)
{
    (void)run_job(b);
    begin(b, &owner, (struct step_request){ .tasks = 1, .exact = true }, &one);
    begin(b, &owner, (struct step_request){ .tasks = 1, .exact = true }, &two);
    begin(b, &owner, (struct step_request){ .tasks = 1, .exact = true }, &three);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->step, 1);
    assert_null(bench_answer(b, &three));
    begin(b, &owner, (struct step_request){ .tasks = 3, .exact = true }, &four);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &four)->code, -EOVERFLOW);
}

CASE(overlapping_steps_wait_for_none, b)
{
    (void)run_job(b);
    begin(b, &owner, (struct step_request){ .tasks = 2 }, &two);
    begin(b, &owner, (struct step_request){ .tasks = 2, .overlap = true }, &three);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &three)->step, 1);
}

CASE(a_gpu_is_one_steps_at_a_time, b)
{
    (void)run_job(b);
    begin(b, &owner, (struct step_request){ .tasks = 1, .gpus = 1, .exact = true }, &one);
    begin(b, &owner, (struct step_request){ .tasks = 1, .gpus = 1, .exact = true }, &two);
    bench_settle(b);
    assert_string_equal(places(b, 0), "0");
    assert_string_equal(places(b, 1), "1");
    finish(b, 0, &three);
    begin(b, &owner, (struct step_request){ .tasks = 1, .gpus = 1, .exact = true }, &four);
    bench_settle(b);
    assert_string_equal(places(b, 2), "0");
    begin(b, &owner, (struct step_request){ .tasks = 1, .gpus = 3, .exact = true }, &five);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &five)->code, -EOVERFLOW);
}

CASE(steps_are_for_the_owner_and_for_jobs_that_run, b)
{
    const struct sent *launch = run_job(b);
    begin(b, &other, (struct step_request){ .tasks = 1 }, &two);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->code, -EPERM);
    begin(b, &owner, (struct step_request){ .tasks = 0 }, &three);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &three)->code, -EINVAL);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_settle(b);
    begin(b, &owner, (struct step_request){ .tasks = 1 }, &four);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &four)->code, -EALREADY);
}

CASE(a_waiting_step_is_refused_when_its_job_ends, b)
{
    const struct sent *launch = run_job(b);
    begin(b, &owner, (struct step_request){ .tasks = 1 }, &two);
    begin(b, &owner, (struct step_request){ .tasks = 1 }, &three);
    bench_settle(b);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 0), 0);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &three)->code, -EALREADY);
    assert_null(core_step(b->core, JOB, 0));
}

CASE(a_step_ends_when_its_client_stays_away, b)
{
    (void)run_job(b);
    begin(b, &owner, (struct step_request){ .tasks = 1, .key = "a" }, &two);
    bench_settle(b);
    core_forget(b->core, &two);
    bench_pass(b, 14000);
    assert_non_null(core_step(b->core, JOB, 0));
    begin(b, &owner, (struct step_request){ .tasks = 1, .key = "a", .is_resumed = true }, &three);
    bench_pass(b, 60000);
    assert_int_equal(bench_answer(b, &three)->step, 0);
    assert_non_null(core_step(b->core, JOB, 0));
    core_forget(b->core, &three);
    bench_pass(b, 15000);
    assert_null(core_step(b->core, JOB, 0));
    begin(b, &owner, (struct step_request){ .tasks = 1, .key = "a", .is_resumed = true }, &four);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &four)->code, -EALREADY);
}

CASE(a_client_that_leaves_while_it_waits_keeps_nobody_waiting, b)
{
    (void)run_job(b);
    begin(b, &owner, (struct step_request){ .tasks = 1, .exact = true }, &one);
    begin(b, &owner, (struct step_request){ .tasks = 1 }, &two);
    begin(b, &owner, (struct step_request){ .tasks = 1, .exact = true }, &three);
    bench_settle(b);
    assert_null(bench_answer(b, &three));
    core_forget(b->core, &two);
    bench_pass(b, 10);
    assert_int_equal(bench_answer(b, &three)->step, 1);
}

/* --- many nodes --- */

#define NODES 128U

static void make_node_name(uint32_t number, char name[SPEC_NAME_MAX + 1])
{
    (void)snprintf(name, SPEC_NAME_MAX + 1, "%03u-%0124u", number, 0U);
}

/* Job 11 runs on all nodes. */
static void run_wide_job(struct bench *b)
{
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    char name[SPEC_NAME_MAX + 1];
    struct error err = { 0 };
    for (uint32_t i = 0; i < NODES; i++) {
        make_node_name(i, name);
        assert_int_equal(bench_hello_as(b, i + 1, name, 1), 0);
        bench_settle(b);
    }
    b->n_sent = 0;
    job_spec_init(spec);
    strings_add(&spec->command, "sleep");
    spec->cwd = xstrdup("/");
    spec->ask.gpus = NODES;
    spec->ask.nodes = NODES;
    bench_submit_spec(b, &owner, spec, &submitting);
    uint32_t link_of[NODES] = { 0 };
    for (size_t i = 0; i < b->n_sent; i++)
        if (b->sent[i].id == MESSAGE_LAUNCH)
            link_of[b->sent[i].rank] = b->sent[i].link;
    b->n_sent = 0;
    uint64_t token = core_job(b->core, JOB)->token;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        const struct message_ready ready = { { JOB, 1, 0, rank }, token, 0 };
        assert_int_equal(
            core_link_message(b->core, b->now_ms, b->now_ms, link_of[rank], MESSAGE_READY, &ready, &err), 0);
    }
    bench_settle(b);
    const struct launch_started started = { .id = { JOB, 1, 0, 0 }, .token = token };
    assert_int_equal(
        core_link_message(b->core, b->now_ms, b->now_ms, link_of[0], MESSAGE_STARTED, &started, &err), 0);
    bench_pass(b, 10);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_RUNNING);
}

static void begin_wide(struct bench *b, const char *key, void *request)
{
    static char names[NODES][SPEC_NAME_MAX + 1];
    struct job_step_node places[NODES] = { 0 };
    _cleanup_free_ char *copy = xstrdup(key);
    const struct job_step step = {
        .key = copy, .overlap = true, .nodes = { .items = places, .count = NODES }
    };
    for (uint32_t i = 0; i < NODES; i++) {
        make_node_name(i, names[i]);
        places[i].node = names[i];
        places[i].tasks = 1;
    }
    core_step_begin(b->core, b->now_ms, b->now_ms, &owner, JOB, &step, false, request);
}

/* How many steps a start of mgpud would find in the row that is on its way to the store. */
static size_t count_stored(const struct bench *b)
{
    struct job_steps row = { 0 };
    struct error err = { 0 };
    for (size_t i = 0; i < b->flying->n_states; i++) {
        const struct state_change *change = &b->flying->states[i];
        record_clear(&job_steps_record, &row);
        if (strcmp(change->kind, "steps") == 0)
            assert_int_equal(
                record_decode(&job_steps_record, change->value.bytes, change->value.length, &row, &err), 0);
    }
    size_t count = row.steps.count;
    record_clear(&job_steps_record, &row);
    return count;
}

TEST_ON(a_step_waits_while_there_are_as_many_as_the_store_takes, struct bench *b, bench_open, bench_close)
{
    static int requests[250];
    const struct job_step how = { .id = 0, .end = END_EXIT };
    uint32_t count = 0;
    run_wide_job(b);
    do {
        char key[12];
        b->n_published = 0;
        assert_true(count < sizeof(requests) / sizeof(requests[0]));
        (void)snprintf(key, sizeof(key), "%u", count);
        begin_wide(b, key, &requests[count]);
        bench_settle(b);
    } while (core_step(b->core, JOB, count++) != NULL);
    assert_true(count > 100);
    assert_null(bench_answer(b, &requests[count - 1]));
    core_step_end(b->core, b->now_ms, b->now_ms, &owner, JOB, &how, &one);
    bench_turn(b);
    assert_int_equal(count_stored(b), count - 1);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &requests[count - 1])->step, count - 1);
}

/* `count` steps that overlap, with these clients. */
static void begin_overlapping(struct bench *b, int *clients, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        b->n_answers = b->n_published = 0;
        begin(b, &owner, (struct step_request){ .tasks = 1, .overlap = true }, &clients[i]);
        bench_settle(b);
        assert_int_equal(bench_answer(b, &clients[i])->code, 0);
    }
}

CASE(steps_that_end_together_are_stored_once, b)
{
    int clients[20], waiting[2];
    (void)run_job(b);
    begin_overlapping(b, clients, 20);
    begin(b, &owner, (struct step_request){ .tasks = 2 }, &waiting[0]);
    begin(b, &owner, (struct step_request){ .tasks = 2 }, &waiting[1]);
    bench_settle(b);
    for (size_t i = 0; i < 20; i++)
        core_forget(b->core, &clients[i]);
    core_forget(b->core, &waiting[0]);
    n_stored = 0;
    bench_pass(b, 15000);
    for (uint32_t id = 0; id <= 20; id++)
        assert_null(core_step(b->core, JOB, id));
    assert_int_equal(bench_answer(b, &waiting[1])->step, 21);
    assert_int_equal(n_stored, 1);
}

CASE(a_job_has_a_bounded_number_of_steps_that_run_or_wait, b)
{
    int clients[STEPS_OPEN_MAX];
    (void)run_job(b);
    begin_overlapping(b, clients, STEPS_OPEN_MAX);
    begin(b, &owner, (struct step_request){ .tasks = 1, .overlap = true }, &one);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &one)->code, -EDQUOT);
    assert_string_equal(
        bench_answer(b, &one)->err.message, "job 11 has 512 steps that run or wait, the limit of one job");
    finish(b, 7, &two);
    begin(b, &owner, (struct step_request){ .tasks = 1, .overlap = true }, &three);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &three)->step, STEPS_OPEN_MAX);
}
