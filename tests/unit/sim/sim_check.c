/* SPDX-License-Identifier: MIT */
/* Does the checker find what is wrong, and cut it down? */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/check_run.h"

/* Books the first of two GPUs twice and the second never. */
static void book_twice(void *arg, const int64_t *job, struct allocation *allocation)
{
    (void)arg, (void)job;
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

static void a_planted_mistake_is_found_and_cut_down_to_one_job(void **state)
{
    const struct check_spoiler spoiler = { .spoil = book_twice };
    struct sim_case of;
    struct error err = { 0 };
    (void)state;
    make_case(&of);
    assert_true(check_run(&of, &spoiler, &err) < 0);
    assert_non_null(strstr(err.message, "given twice"));
    check_shrink(&of, &spoiler);
    assert_int_equal(of.n_jobs, 1);
    assert_int_equal(of.n_events, 0);
    assert_true(of.jobs[0][JOB_GPUS] >= 2);
    assert_true(check_run(&of, &spoiler, &err) < 0);
    assert_int_equal(check_run(&of, NULL, &err), 0);
    case_clear(&of);
}

static void a_case_survives_being_written_and_read(void **state)
{
    struct sim_case of, again;
    struct error err = { 0 };
    char path[] = "/tmp/mgpu-case-XXXXXX";
    (void)state;
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

static void equal_seeds_make_equal_cases(void **state)
{
    struct sim_case a, b;
    (void)state;
    case_make(&a, 77);
    case_make(&b, 77);
    assert_int_equal(a.n_jobs, b.n_jobs);
    assert_memory_equal(a.jobs, b.jobs, a.n_jobs * sizeof(*a.jobs));
    case_clear(&a);
    case_clear(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planted_mistake_is_found_and_cut_down_to_one_job),
        cmocka_unit_test(a_case_survives_being_written_and_read),
        cmocka_unit_test(equal_seeds_make_equal_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
