/* SPDX-License-Identifier: MIT */
/* Where the output of a requeued attempt is, as kept in the job's record, and for how long. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/job.h"
#include "unit_test.h"

static void apply(struct job *job, enum job_event_type type, struct job_event event)
{
    struct error err = { 0 };
    event.job = job->id;
    event.type = type;
    event.wall_ms = 1000 + type;
    assert_int_equal(job_apply(job, &event, &err), 0);
    assert_int_equal(job_invariant(job, &err), 0);
    job_event_clear(&event);
}

static void allocate(struct job *job, uint32_t attempt, const char *first, const char *second)
{
    struct job_event event = { .attempt = attempt, .token = 7, .node = xstrdup(first) };
    if (second != NULL) {
        job_nodes_add(&event.nodes, first, "boot");
        job_nodes_add(&event.nodes, second, "boot");
    }
    apply(job, EVENT_ALLOCATED, event);
}

static void start(struct job *job, uint32_t attempt, const char *log_path)
{
    apply(job, EVENT_STARTED, (struct job_event){ .attempt = attempt, .log_path = xstrdup(log_path) });
}

static void requeue(struct job *job, uint32_t attempt, const char *log_path)
{
    apply(job, EVENT_REQUEUED,
        (struct job_event){ .attempt = attempt, .cause = REQUEUE_FAILED, .log_path = xstrdup(log_path) });
}

static void assert_rank(const struct job *job, uint32_t rank, const char *node, const char *log_path)
{
    const struct job_node *found = job_earlier_rank(job, rank);
    assert_non_null(found);
    assert_string_equal(found->name, node);
    assert_string_equal(found->log_path, log_path);
}

static int make_job(void **state)
{
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "train");
    spec.cwd = xstrdup("/");
    spec.ask.gpus = 0;
    *state = job_new(42, &spec);
    job_spec_clear(&spec);
    apply(*state, EVENT_SUBMITTED, (struct job_event){ .uid = 1000 });
    return 0;
}

static int free_job(void **state)
{
    job_free(*state);
    return 0;
}

#define CASE(name, job) TEST_ON(name, struct job *job, make_job, free_job)

CASE(a_requeued_attempt_leaves_its_node_and_its_log, job)
{
    assert_null(job_earlier_rank(job, 0));
    assert_false(job_earlier_is_latest(job));
    allocate(job, 1, "n1", NULL);
    start(job, 1, "/home/a.log");
    assert_null(job_earlier_rank(job, 0));
    requeue(job, 1, "/home/a.log");
    assert_null(job->node);
    assert_int_equal(job_run(job)->earlier->attempt, 1);
    assert_rank(job, 0, "n1", "/home/a.log");
    assert_null(job_earlier_rank(job, 1));
    assert_true(job_earlier_is_latest(job));
}

CASE(it_is_the_latest_output_until_the_next_attempt_starts, job)
{
    allocate(job, 1, "n1", NULL);
    start(job, 1, "/home/a.log");
    requeue(job, 1, "/home/a.log");
    allocate(job, 2, "n2", NULL);
    assert_true(job_earlier_is_latest(job));
    start(job, 2, "/home/a.log");
    assert_false(job_earlier_is_latest(job));
    assert_rank(job, 0, "n1", "/home/a.log");
    requeue(job, 2, "/home/b.log");
    assert_int_equal(job_run(job)->earlier->attempt, 2);
    assert_rank(job, 0, "n2", "/home/b.log");
}

CASE(an_attempt_that_never_ran_does_not_replace_it, job)
{
    allocate(job, 1, "n1", NULL);
    start(job, 1, "/home/a.log");
    requeue(job, 1, "/home/a.log");
    allocate(job, 2, "n2", NULL);
    apply(job, EVENT_RETURNED, (struct job_event){ .attempt = 2 });
    assert_rank(job, 0, "n1", "/home/a.log");
    allocate(job, 3, "n3", NULL);
    requeue(job, 3, NULL);
    assert_int_equal(job_run(job)->earlier->attempt, 1);
    assert_rank(job, 0, "n1", "/home/a.log");
    assert_true(job_earlier_is_latest(job));
}

CASE(the_log_of_an_attempt_whose_node_was_lost_is_that_of_its_start, job)
{
    allocate(job, 1, "n1", NULL);
    start(job, 1, "/home/a.log");
    requeue(job, 1, NULL);
    assert_rank(job, 0, "n1", "/home/a.log");
}

CASE(each_rank_has_its_node_and_its_log, job)
{
    allocate(job, 1, "n1", "n2");
    start(job, 1, "/home/a.log");
    struct job_event event = { .attempt = 1, .cause = REQUEUE_FAILED };
    job_nodes_add(&event.nodes, "n1", "boot");
    job_nodes_add(&event.nodes, "n2", "boot");
    struct job_node *nodes = event.nodes.items;
    nodes[1].log_path = xstrdup("/home/a.log.1");
    nodes[1].exit_code = 3;
    apply(job, EVENT_REQUEUED, event);
    assert_null(job_earlier_rank(job, 0));
    assert_rank(job, 1, "n2", "/home/a.log.1");
    assert_null(job_earlier_rank(job, 1)->boot_id);
}

CASE(a_last_attempt_without_output_leaves_that_of_the_one_before, job)
{
    allocate(job, 1, "n1", NULL);
    start(job, 1, "/home/a.log");
    requeue(job, 1, "/home/a.log");
    allocate(job, 2, "n2", NULL);
    apply(job, EVENT_ENDED, (struct job_event){ .attempt = 2, .end = END_START_FAILED });
    assert_true(job_earlier_is_latest(job));
    assert_rank(job, 0, "n1", "/home/a.log");
}

CASE(the_output_of_a_last_attempt_whose_start_was_not_reported_is_its_own, job)
{
    allocate(job, 1, "n1", NULL);
    start(job, 1, "/home/a.log");
    requeue(job, 1, "/home/a.log");
    allocate(job, 2, "n2", NULL);
    apply(job, EVENT_ENDED,
        (struct job_event){ .attempt = 2, .end = END_UNKNOWN, .log_path = xstrdup("/home/b.log") });
    assert_false(job_earlier_is_latest(job));
}
