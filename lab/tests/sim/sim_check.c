/* SPDX-License-Identifier: MIT */
/* Does the checker find what is wrong, and cut it down? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/sim/check_run.h"
#include "sched/queue/policy.h"
#include "unit_test.h"

/* Books the first of two GPUs twice and the second never. */
static void book_twice(void *arg, const int64_t *job, struct allocation *allocation)
{
    if (allocation->n_gpus >= 2)
        allocation->gpus[1] = allocation->gpus[0];
}

/* A case that is good but for the spoiler: only its job 5 has more than one GPU. */
static void make_case(struct sim_case *ret)
{
    struct error err = { 0 };
    *ret = (struct sim_case){ .nodes = calloc(1, sizeof(*ret->nodes)),
        .jobs = calloc(10, sizeof(*ret->jobs)),
        .events = calloc(2, sizeof(*ret->events)),
        .n_nodes = 1,
        .n_jobs = 10,
        .n_events = 2 };
    ret->nodes[0][NODE_GPUS] = 4;
    ret->nodes[0][NODE_CPU] = 8000;
    for (int64_t i = 0; i < 10; i++) {
        ret->jobs[i][JOB_ID] = i + 1;
        ret->jobs[i][JOB_AT] = 1000 * i;
        ret->jobs[i][JOB_RUN] = 5000;
        ret->jobs[i][JOB_UID] = ret->jobs[i][JOB_GID] = 1;
        ret->jobs[i][JOB_GPUS] = i == 4 ? 2 : 1;
    }
    ret->events[0][EVENT_AT] = 3000;
    ret->events[0][EVENT_KIND] = HAPPEN_PAUSE;
    ret->events[1][EVENT_AT] = 4000;
    ret->events[1][EVENT_KIND] = HAPPEN_RESUME_GPU;
    assert_int_equal(check_run(ret, NULL, &err), 0);
}

TEST(a_planted_mistake_is_found_and_cut_down_to_one_job)
{
    const struct check_spoiler spoiler = { .spoil = book_twice };
    _cleanup_(case_clear) struct sim_case of;
    struct error err = { 0 };
    make_case(&of);
    assert_true(check_run(&of, &spoiler, &err) < 0);
    assert_non_null(strstr(err.message, "allocated twice"));
    check_shrink(&of, &spoiler);
    assert_int_equal(of.n_jobs, 1);
    assert_int_equal(of.n_events, 0);
    assert_true(of.jobs[0][JOB_GPUS] >= 2);
    assert_true(check_run(&of, &spoiler, &err) < 0);
    assert_int_equal(check_run(&of, NULL, &err), 0);
}

/* One GPU, taken; then user 1's jobs 2 and 3, and user 2's 4 and 5, of which each owner wants the second
 * first. */
static void make_queue(struct sim_case *ret)
{
    static const int64_t own[] = { 0, 0, 3, 0, 1 };
    *ret = (struct sim_case){ .nodes = calloc(1, sizeof(*ret->nodes)),
        .jobs = calloc(5, sizeof(*ret->jobs)),
        .n_nodes = 1,
        .n_jobs = 5 };
    while (strcmp(policies[ret->settings[SET_POLICY]]->name, "fifo") != 0)
        ret->settings[SET_POLICY]++;
    ret->nodes[0][NODE_GPUS] = 1;
    ret->nodes[0][NODE_CPU] = 8000;
    for (int64_t i = 0; i < 5; i++) {
        ret->jobs[i][JOB_ID] = i + 1;
        ret->jobs[i][JOB_AT] = 1000 * i;
        ret->jobs[i][JOB_RUN] = 20000;
        ret->jobs[i][JOB_UID] = ret->jobs[i][JOB_GID] = i < 3 ? 1 : 2;
        ret->jobs[i][JOB_GPUS] = 1;
        ret->jobs[i][JOB_OWN] = own[i];
    }
}

static void make_own_count_for_all(void *arg, struct sched_job_spec *spec)
{
    spec->key.priority = spec->key.own_priority;
    spec->key.own_priority = 0;
}

static void forget_own(void *arg, struct sched_job_spec *spec)
{
    spec->key.own_priority = 0;
}

TEST(an_own_priority_that_counts_for_all_or_for_nobody_is_found)
{
    static const struct {
        struct check_spoiler spoiler;
        const char *found;
    } tries[] = {
        { { .change = make_own_count_for_all },
            "job 5 of user 2 stands before job 2 of user 1, which came first" },
        { { .change = forget_own }, "job 2 stands before job 3, which its owner wants before it" },
    };
    _cleanup_(case_clear) struct sim_case of;
    struct error err = { 0 };
    make_queue(&of);
    assert_int_equal(check_run(&of, NULL, &err), 0);
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        assert_true(check_run(&of, &tries[i].spoiler, &err) < 0);
        assert_non_null(strstr(err.message, tries[i].found));
    }
}

/* A node, of which user 1 has used so much that without the promise it could be overtaken for longer. Its job
 * 2, with a time limit of 10 s, is promised that no job submitted 300 s after it precedes it; user 2's job 3
 * is submitted later and shorter. Job 1 ends after it.
 */
static void make_promise(struct sim_case *ret)
{
    static const int64_t at_ms[] = { 0, 1000, 302000 }, run_ms[] = { 400000, 10000, 1000 };
    *ret = (struct sim_case){ .nodes = calloc(1, sizeof(*ret->nodes)),
        .jobs = calloc(3, sizeof(*ret->jobs)),
        .n_nodes = 1,
        .n_jobs = 3 };
    ret->settings[SET_RESERVATIONS] = 1;
    ret->settings[SET_IS_EXACT] = 1;
    ret->nodes[0][NODE_GPUS] = 8;
    ret->nodes[0][NODE_CPU] = 8000;
    for (int64_t i = 0; i < 3; i++) {
        ret->jobs[i][JOB_ID] = i + 1;
        ret->jobs[i][JOB_AT] = at_ms[i];
        ret->jobs[i][JOB_RUN] = run_ms[i];
        ret->jobs[i][JOB_UID] = i < 2 ? 1 : 2;
        ret->jobs[i][JOB_GPUS] = 8;
    }
    ret->jobs[1][JOB_LIMIT] = 10000;
}

/* The scheduler believes in another request, so it orders by another promise than the one given. */
static void forget_limit(void *arg, struct sched_job_spec *spec)
{
    spec->key.limit_ms = 0;
    spec->key.estimate_ms = spec->key.estimate_ms == 10000 ? 20000 : spec->key.estimate_ms;
}

TEST(a_promise_that_is_not_kept_is_found)
{
    const struct check_spoiler spoiler = { .change = forget_limit };
    _cleanup_(case_clear) struct sim_case of;
    struct error err = { 0 };
    make_promise(&of);
    assert_int_equal(check_run(&of, NULL, &err), 0);
    assert_true(check_run(&of, &spoiler, &err) < 0);
    assert_non_null(
        strstr(err.message, "job 3 stands before job 2, to which only jobs submitted until 301000 ms"));
}

/* Job 34 gives way in the pass in which job 37, which its owner wants before it, waits. */
TEST(own_priorities_order_a_job_that_gives_way_in_the_same_pass)
{
    static const char text[] =
        "{\"settings\": {\"policy\": \"easy-sjf\", \"placement\": \"consolidate\"}}\n"
        "{\"node\": {\"gpus\": 4, \"cpu_milli\": 32000}}\n"
        "{\"job\": {\"id\": 2, \"at_ms\": 80000, \"run_ms\": 21000, \"uid\": 3, \"gid\": 2, \"gpus\": 1, "
        "\"hold_until_ms\": 396000, \"elements\": 6}}\n"
        "{\"job\": {\"id\": 8, \"at_ms\": 158000, \"run_ms\": 316000, \"uid\": 3, \"gid\": 2, \"gpus\": 1}}\n"
        "{\"job\": {\"id\": 14, \"at_ms\": 370000, \"run_ms\": 25000, \"uid\": 2, \"gid\": 1, \"gpus\": 2}}\n"
        "{\"job\": {\"id\": 34, \"at_ms\": 360000, \"run_ms\": 15000, \"uid\": 1, \"gid\": 1, \"gpus\": 2, "
        "\"preemptible\": 1}}\n"
        "{\"job\": {\"id\": 37, \"at_ms\": 385000, \"run_ms\": 4000, \"uid\": 1, \"gid\": 1, \"gpus\": 2, "
        "\"preemptible\": 1, \"own_priority\": 2}}\n";
    char path[] = "/tmp/mgpu-case-XXXXXX";
    _cleanup_(case_clear) struct sim_case of;
    struct error err = { 0 };
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
    assert_int_equal(case_read(&of, path, &err), 0);
    (void)unlink(path);
    assert_int_equal(check_run(&of, NULL, &err), 0);
}

static bool allow_all(void *arg)
{
    return true;
}

static void forget_node(void *arg, struct sched_job_spec *spec)
{
    spec->key.request.nodelist = NULL;
}

static void forget_gpus(void *arg, struct sched_job_spec *spec)
{
    spec->key.request.n_allow = 0;
}

/* Job 1 is parked for job 3, which runs longer than job 2 beside it: what job 2 leaves is not where job 1
 * was. */
static void make_parked(struct sim_case *ret, size_t nodes, int64_t where)
{
    static const int64_t at_ms[] = { 0, 0, 100000 }, run_ms[] = { 10000000, 2000000, 4900000 };
    *ret = (struct sim_case){ .nodes = calloc(nodes, sizeof(*ret->nodes)),
        .jobs = calloc(3, sizeof(*ret->jobs)),
        .n_nodes = nodes,
        .n_jobs = 3 };
    while (strcmp(policies[ret->settings[SET_POLICY]]->name, "srtf") != 0)
        ret->settings[SET_POLICY]++;
    ret->settings[SET_IS_EXACT] = 1;
    ret->settings[SET_PARK] = where;
    ret->settings[SET_PARK_ROOM] = 1000;
    for (size_t i = 0; i < nodes; i++) {
        ret->nodes[i][NODE_GPUS] = nodes == 1 ? 2 : 1;
        ret->nodes[i][NODE_CPU] = 8000;
    }
    for (int64_t i = 0; i < 3; i++) {
        ret->jobs[i][JOB_ID] = i + 1;
        ret->jobs[i][JOB_AT] = at_ms[i];
        ret->jobs[i][JOB_RUN] = run_ms[i];
        ret->jobs[i][JOB_UID] = ret->jobs[i][JOB_GID] = 1;
        ret->jobs[i][JOB_GPUS] = 1;
    }
}

TEST(parking_against_a_rule_is_found)
{
    static const struct {
        const char *found;
        struct check_spoiler spoiler;
        size_t nodes;
        int64_t where, room, refuses, wide;
    } tries[] = {
        { "job 1 returns to another node than it left", { .change = forget_node }, 2, CHECK_PARK_NODE, 1000,
            0, 0 },
        { "job 1 returns to other GPUs than it left", { .change = forget_gpus }, 1, CHECK_PARK_GPU, 1000, 0,
            0 },
        { "holds 1000 thousandths of parked GPUs; its room is 0", { .allows = allow_all }, 2, CHECK_PARK_ANY,
            0, 0, 0 },
        { "job 1 is parked although it cannot be", { .allows = allow_all }, 2, CHECK_PARK_ANY, 1000, 1, 0 },
        { "job 1 is parked although it has several nodes", { .allows = allow_all }, 2, CHECK_PARK_ANY, 1000,
            0, 1 },
    };
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct sim_case of;
        struct error err = { 0 };
        make_parked(&of, tries[i].nodes, tries[i].where);
        of.settings[SET_PARK_ROOM] = tries[i].room;
        of.jobs[0][JOB_REFUSES] = tries[i].refuses;
        if (tries[i].wide) {
            of.jobs[0][JOB_GPUS] = of.jobs[0][JOB_NODES] = 2;
            of.jobs[1][JOB_AT] = of.jobs[2][JOB_AT];
        }
        assert_int_equal(check_run(&of, NULL, &err), 0);
        assert_true(check_run(&of, &tries[i].spoiler, &err) < 0);
        if (strstr(err.message, tries[i].found) == NULL)
            fail_msg("expected '%s', found '%s'", tries[i].found, err.message);
        case_clear(&of);
    }
}

TEST(a_case_survives_being_written_and_read)
{
    struct sim_case of, again;
    struct error err = { 0 };
    char path[] = "/tmp/mgpu-case-XXXXXX";
    case_make(&of, 5);
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    case_write(&of, file);
    (void)fclose(file);
    assert_int_equal(case_read(&again, path, &err), 0);
    (void)unlink(path);
    assert_memory_equal(of.settings, again.settings, sizeof(of.settings));
    assert_int_equal(of.n_jobs, again.n_jobs);
    assert_memory_equal(of.jobs, again.jobs, of.n_jobs * sizeof(*of.jobs));
    assert_memory_equal(of.events, again.events, of.n_events * sizeof(*of.events));
    case_clear(&of);
    case_clear(&again);
}

TEST(equal_seeds_make_equal_cases)
{
    struct sim_case a, b;
    case_make(&a, 77);
    case_make(&b, 77);
    assert_int_equal(a.n_jobs, b.n_jobs);
    assert_memory_equal(a.jobs, b.jobs, a.n_jobs * sizeof(*a.jobs));
    case_clear(&a);
    case_clear(&b);
}

/* Job 2 takes longer than job 1 may be parked, and no longer than the scheduler is told. */
static void make_guest(struct sim_case *ret)
{
    make_parked(ret, 1, CHECK_PARK_AUTO);
    ret->settings[SET_POLICY] = 0;
    ret->settings[SET_PARK_ROOM] = 3000;
    ret->nodes[0][NODE_GPUS] = 1;
    ret->n_jobs = 2;
    ret->jobs[0][JOB_AT] = 1000;
    ret->jobs[0][JOB_RUN] = 100000000;
    ret->jobs[1][JOB_AT] = 61000;
    ret->jobs[1][JOB_RUN] = 1000000;
}

TEST(parking_for_longer_than_promised_is_found)
{
    struct check_spoiler spoiler = { .park_bound = 40 };
    _cleanup_(case_clear) struct sim_case of;
    struct error err = { 0 };
    make_guest(&of);
    assert_int_equal(check_run(&of, NULL, &err), 0);
    assert_int_equal(check_run(&of, &spoiler, &err), -EPROTO);
    assert_non_null(strstr(err.message, "job 1 has been parked for "));
    assert_non_null(strstr(err.message, "more than 4 times the 60000 ms that it has run"));
}

/* Job 3 starts on the GPU that is owed to job 1 if the scheduler does not know that it refuses. */
TEST(preempting_a_job_that_should_not_have_started_is_found)
{
    struct check_spoiler spoiler = { .allows = allow_all };
    _cleanup_(case_clear) struct sim_case of;
    struct error err = { 0 };
    make_guest(&of);
    of.n_jobs = 3;
    of.jobs[1][JOB_RUN] = 100000;
    of.jobs[2][JOB_AT] = 100000;
    of.jobs[2][JOB_RUN] = 2000000;
    of.jobs[2][JOB_PRIORITY] = 1;
    of.jobs[2][JOB_REFUSES] = 2;
    assert_int_equal(check_run(&of, NULL, &err), 0);
    assert_int_equal(check_run(&of, &spoiler, &err), -EPROTO);
    assert_non_null(strstr(err.message,
        "job 3, which can neither be parked nor has a time limit, starts again although it had its GPUs too "
        "briefly"));
}

/* Job 2 refuses to be parked and has job 1's GPU, because it is believed to end at once. It does not. */
static void make_borrower(struct sim_case *ret)
{
    make_guest(ret);
    ret->jobs[0][JOB_RUN] = 4000000;
    ret->jobs[1][JOB_REFUSES] = 2;
    ret->jobs[1][JOB_RUN] = 2000000;
    ret->jobs[1][JOB_TOLD] = 1000;
}

TEST(a_job_that_borrows_a_gpu_too_often_or_too_briefly_is_found)
{
    static const struct {
        struct check_spoiler spoiler;
        const char *found;
    } tries[] = {
        { { .borrows_again = true }, "starts again for parked jobs a second time" },
        { { .park_margin = 1 }, "starts again although it had its GPUs too briefly" },
    };
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        struct sim_case of;
        struct error err = { 0 };
        make_borrower(&of);
        if (tries[i].spoiler.park_margin > 0)
            of.jobs[1][JOB_TOLD] = 100000;
        assert_int_equal(check_run(&of, NULL, &err), 0);
        assert_int_equal(check_run(&of, &tries[i].spoiler, &err), -EPROTO);
        if (strstr(err.message, tries[i].found) == NULL)
            fail_msg("expected '%s', found '%s'", tries[i].found, err.message);
        case_clear(&of);
    }
}

/* So the random cases do come to the bound, and to jobs that start again for parked ones. */
TEST(random_cases_come_to_the_bound)
{
    unsigned n_rule = 0, n_found = 0, n_again = 0;
    for (uint64_t seed = 1; seed <= 800; seed++) {
        struct check_spoiler spoiler = { .park_bound = 40 };
        struct sim_case of;
        struct error err = { 0 };
        case_make(&of, seed);
        if (of.settings[SET_PARK] == CHECK_PARK_AUTO) {
            n_rule++;
            assert_int_equal(check_run(&of, NULL, &err), 0);
            n_found +=
                check_run(&of, &spoiler, &err) < 0 && strstr(err.message, "has been parked for") != NULL;
            spoiler = (struct check_spoiler){ .borrows_again = true };
            n_again += check_run(&of, &spoiler, &err) < 0 && strstr(err.message, "a second time") != NULL;
        }
        case_clear(&of);
    }
    if (n_rule < 20 || n_found < 3 || n_again < 1)
        fail_msg(
            "%u cases have the rule, in %u a job is parked for too long, and in %u one starts again twice",
            n_rule, n_found, n_again);
}
