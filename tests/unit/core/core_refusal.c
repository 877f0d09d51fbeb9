/* SPDX-License-Identifier: MIT */
/* Nodes that cannot run a job are left out, and the job ends when none is left. */
#include "bench.h"

#include <string.h>

#include "base/memory.h"

#define CASE(name) TEST_WITH(name, NULL, bench_close)

#define BACKOFF_MS 60000 // longer than a job that was given back waits

static int one, two;

static const char *const names[] = { "a", "b", "c" };

/* The link of the node on which it starts; 0: it does not. */
static uint32_t started_on(struct bench *b, uint64_t job)
{
    bench_pass(b, BACKOFF_MS);
    if (core_job(b->core, job)->state != JOB_STARTING)
        return 0;
    return bench_sent(b, MESSAGE_LAUNCH, job)->link;
}

static struct bench *open_with_nodes(void **state, uint32_t count)
{
    (void)bench_open(state);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(bench_hello_as(*state, i + 1, names[i], 1), 0);
    bench_submit(*state, 1000, 1, NULL, &one);
    bench_settle(*state);
    return *state;
}

CASE(a_job_that_a_node_refuses_runs_on_another)
{
    struct bench *b = open_with_nodes(state, 2);
    uint32_t first = started_on(b, 11);
    assert_int_not_equal(first, 0);
    assert_int_equal(bench_refused(b, first, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_int_equal(started_on(b, 11), 3 - first);
    assert_int_equal(core_job(b->core, 11)->attempt, 2);
}

CASE(a_job_that_all_nodes_refuse_ends)
{
    struct bench *b = open_with_nodes(state, 2);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t link = started_on(b, 11);
        assert_int_not_equal(link, 0);
        assert_int_equal(bench_refused(b, link, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
        bench_settle(b);
    }
    assert_int_equal(core_job(b->core, 11)->state, JOB_DONE);
    assert_int_equal(core_job(b->core, 11)->end, END_START_FAILED);
}

CASE(the_only_node_ends_the_job_at_once)
{
    struct bench *b = open_with_nodes(state, 1);
    assert_int_equal(bench_refused(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_START_FAILED);
    assert_non_null(strstr(core_job(b->core, 11)->text, "there is no user"));
}

CASE(a_job_that_is_cancelled_is_not_given_back)
{
    struct bench *b = open_with_nodes(state, 2);
    uint32_t link = started_on(b, 11);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    core_cancel(
        b->core, b->now_ms, b->now_ms, &(struct identity){ .is_known = true, .uid = 1000 }, 11, -1, &two);
    bench_settle(b);
    assert_int_equal(bench_refused(b, link, &launch), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_DONE);
}

static struct bench *open_with_retry(void **state, uint32_t count)
{
    static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
    (void)bench_open(state);
    struct bench *b = *state;
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(bench_hello_as(b, i + 1, names[i], 1), 0);
    struct job_spec *spec = bench_spec("train");
    spec->ask.gpus = 1;
    spec->ask.retry = 3;
    bench_submit_spec(b, &owner, spec, &one);
    return b;
}

static void refuse_on(struct bench *b, uint32_t link)
{
    assert_int_not_equal(link, 0);
    assert_int_equal(bench_refused(b, link, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
    bench_settle(b);
}

CASE(a_job_that_all_nodes_refused_is_retried_on_any_of_them)
{
    for (uint32_t count = 1; count <= 3; count++) {
        struct bench *b = open_with_retry(state, count);
        for (uint32_t i = 0; i < count; i++)
            refuse_on(b, started_on(b, 11));
        assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
        assert_int_equal(core_job(b->core, 11)->retries, 1);
        uint32_t link = started_on(b, 11);
        assert_int_not_equal(link, 0);
        assert_int_equal(bench_started(b, link, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
        if (count < 3)
            bench_close(state);
    }
}

/* The only other node is drained when the job is to run again. */
CASE(a_job_that_was_refused_once_may_use_that_node_after_a_failure)
{
    struct bench *b = open_with_retry(state, 2);
    uint32_t first = started_on(b, 11);
    refuse_on(b, first);
    uint32_t second = started_on(b, 11);
    assert_int_equal(second, 3 - first);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    assert_int_equal(bench_exited(b, second, &launch, END_GPU_FAULT, 1), 0);
    core_link_down(b->core, b->now_ms, b->now_ms, second);
    bench_settle(b);
    assert_int_equal(started_on(b, 11), first);
}

/* A job of two nodes with a GPU each, among `count` nodes. */
static struct bench *open_with_wide_job(void **state, uint32_t count)
{
    static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
    (void)bench_open(state);
    struct bench *b = *state;
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(bench_hello_as(b, i + 1, names[i], 1), 0);
    struct job_spec *spec = bench_spec("train");
    spec->ask.gpus = 2;
    spec->ask.nodes = 2;
    bench_submit_spec(b, &owner, spec, &one);
    assert_int_not_equal(started_on(b, 11), 0);
    return b;
}

/* The node of the rank that was launched last refuses; the other rank is given up. */
static uint32_t refuse_last_rank(struct bench *b)
{
    struct sent last = *bench_sent(b, MESSAGE_LAUNCH, 11);
    struct sent other = last;
    for (size_t i = b->n_sent; i-- > 0;)
        if (b->sent[i].id == MESSAGE_LAUNCH && b->sent[i].attempt == last.attempt &&
            b->sent[i].link != last.link)
            other = b->sent[i];
    assert_int_not_equal(last.link, other.link);
    assert_int_equal(bench_refused(b, last.link, &last), 0);
    assert_int_equal(bench_returned(b, other.link, &other), 0);
    bench_settle(b);
    return last.link;
}

CASE(a_wide_job_runs_on_the_nodes_that_do_not_refuse_it)
{
    struct bench *b = open_with_wide_job(state, 3);
    uint32_t refusing = refuse_last_rank(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_int_not_equal(started_on(b, 11), 0);
    assert_int_equal(core_job(b->core, 11)->attempt, 2);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_string_not_equal(job_node_name(core_job(b->core, 11), rank), names[refusing - 1]);
}

CASE(a_wide_job_ends_when_too_few_nodes_are_left)
{
    struct bench *b = open_with_wide_job(state, 2);
    uint32_t refusing = refuse_last_rank(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_DONE);
    assert_int_equal(core_job(b->core, 11)->end, END_START_FAILED);
    assert_non_null(strstr(core_job(b->core, 11)->text, "there is no user"));
    assert_non_null(strstr(core_job(b->core, 11)->text, names[refusing - 1]));
}

/* --- nodes that are down --- */

#define PATIENCE_MS (10 * BACKOFF_MS)

static void set_patience(struct bench *b, int64_t ms)
{
    b->options.start_patience_ms = ms;
    core_configure(b->core, b->now_ms, b->now_ms, &b->options);
    bench_settle(b);
}

/* The job was refused by one node; the other is down. Returns the link of the first. */
static uint32_t open_with_node_down(void **state, int64_t patience_ms)
{
    struct bench *b = open_with_nodes(state, 2);
    set_patience(b, patience_ms);
    uint32_t up = started_on(b, 11);
    core_link_down(b->core, b->now_ms, b->now_ms, 3 - up);
    refuse_on(b, up);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    return up;
}

/* The link of the node on which the job starts when the patience is over; 0: on none. */
static uint32_t started_at_last(struct bench *b)
{
    uint32_t link = 0;
    for (unsigned i = 0; link == 0 && i < PATIENCE_MS / BACKOFF_MS + 1; i++)
        link = started_on(b, 11);
    return link;
}

CASE(a_job_does_not_wait_for_ever_for_a_node_that_is_down)
{
    uint32_t up = open_with_node_down(state, PATIENCE_MS);
    struct bench *b = *state;
    for (unsigned i = 0; i < PATIENCE_MS / BACKOFF_MS - 1; i++)
        assert_int_equal(started_on(b, 11), 0);
    assert_int_equal(started_at_last(b), up);
    refuse_on(b, up);
    assert_int_equal(core_job(b->core, 11)->state, JOB_DONE);
    assert_int_equal(core_job(b->core, 11)->end, END_START_FAILED);
    assert_non_null(strstr(core_job(b->core, 11)->text, "there is no user"));
}

CASE(a_node_that_refused_a_job_may_run_it_after_the_patience)
{
    uint32_t up = open_with_node_down(state, PATIENCE_MS);
    struct bench *b = *state;
    assert_int_equal(started_at_last(b), up);
    assert_int_equal(bench_started(b, up, bench_sent(b, MESSAGE_LAUNCH, 11)), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

CASE(a_node_that_comes_back_runs_what_waited_for_it)
{
    uint32_t up = open_with_node_down(state, PATIENCE_MS);
    struct bench *b = *state;
    assert_int_equal(started_on(b, 11), 0);
    assert_int_equal(bench_hello_as(b, 4, names[3 - up - 1], 1), 0);
    assert_int_equal(started_on(b, 11), 4);
}

CASE(without_an_end_of_patience_a_job_waits_for_the_node)
{
    (void)open_with_node_down(state, 0);
    assert_int_equal(started_at_last(*state), 0);
    assert_int_equal(core_job(((struct bench *)*state)->core, 11)->state, JOB_QUEUED);
}

/* The node that did not refuse it runs another job all the time. */
CASE(a_job_waits_for_a_busy_node_for_longer_than_the_patience)
{
    struct bench *b = open_with_nodes(state, 2);
    set_patience(b, PATIENCE_MS);
    uint32_t refusing = started_on(b, 11);
    bench_submit(b, 1000, 1, NULL, &two);
    bench_settle(b);
    struct sent other = *bench_sent(b, MESSAGE_LAUNCH, 12);
    assert_int_equal(bench_started(b, other.link, &other), 0);
    refuse_on(b, refusing);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(started_at_last(b), 0);
    core_link_down(b->core, b->now_ms, b->now_ms, other.link);
    bench_settle(b);
    assert_int_equal(started_at_last(b), refusing);
    refuse_on(b, refusing);
    assert_int_equal(core_job(b->core, 11)->end, END_START_FAILED);
}

CASE(a_wide_job_ends_when_one_of_the_nodes_it_needs_stays_down)
{
    struct bench *b = open_with_wide_job(state, 3);
    set_patience(b, PATIENCE_MS);
    uint32_t used = 0;
    for (size_t i = 0; i < b->n_sent; i++)
        if (b->sent[i].id == MESSAGE_LAUNCH)
            used += b->sent[i].link;
    core_link_down(b->core, b->now_ms, b->now_ms, 1 + 2 + 3 - used);
    (void)refuse_last_rank(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_int_not_equal(started_at_last(b), 0);
    (void)refuse_last_rank(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_DONE);
    assert_int_equal(core_job(b->core, 11)->end, END_START_FAILED);
}
