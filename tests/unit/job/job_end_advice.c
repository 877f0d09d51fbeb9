/* SPDX-License-Identifier: MIT */
/* Advice to owners after the end of a job. */
#include <stdlib.h>
#include <string.h>

#include "job/end_advice.h"
#include "unit_test.h"

TEST(advice_depends_on_the_end)
{
    struct job_ask ask = { 0 };
    struct job job = { .state = JOB_DONE, .ask = &ask };
    static const struct {
        enum job_end end;
        const char *words;
    } rows[] = { { END_EXIT, NULL }, { END_CANCELLED, NULL }, { END_TIME_LIMIT, "more with -t" },
        { END_OOM, "more with -M" }, { END_BUDGET, "mgpu token list" },
        { END_NODE_LOST, "--requeue-on node-lost" }, { END_GPU_OOM, "smaller batches" },
        { END_GPU_FAULT, "The GPU was at fault" }, { END_KINDS, NULL } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        job.end = rows[i].end;
        const char *advice = job_end_advice(&job, NULL);
        if (rows[i].words == NULL)
            assert_null(advice);
        else
            assert_non_null(strstr(advice, rows[i].words));
    }
}

TEST(advice_for_a_share_names_its_option)
{
    struct job_ask ask = { .gpu_mem = 1 << 30 };
    struct job job = { .state = JOB_DONE, .ask = &ask, .end = END_GPU_OOM };
    assert_non_null(strstr(job_end_advice(&job, NULL), "--retry-oom"));
}

TEST(program_is_blamed_for_errors_that_programs_cause)
{
    struct job_ask ask = { 0 };
    struct job_usage usage = { .xid = 13 };
    struct job job = { .state = JOB_DONE, .ask = &ask, .end = END_GPU_FAULT };
    assert_non_null(strstr(job_end_advice(&job, &usage), "the program is at fault"));
    usage.xid = 79;
    assert_non_null(strstr(job_end_advice(&job, &usage), "The GPU was at fault"));
}

TEST(cause_is_a_line_of_the_output)
{
    struct job_ask ask = { 0 };
    char out_of_memory[] = "start\nCUDA out of memory. Tried 2 GiB\n";
    char of_setup[] = "no environment \x1b[1mfoo\nmgpu: the setup failed with 1\n";
    struct job_usage usage = { .tail = out_of_memory };
    struct job job = { .state = JOB_DONE, .ask = &ask, .end = END_EXIT, .exit_code = 1 };
    char *cause = job_end_cause(&job, &usage);
    assert_string_equal(cause, "GPU out of memory: CUDA out of memory. Tried 2 GiB");
    assert_non_null(strstr(job_end_advice(&job, &usage), "smaller batches"));
    free(cause);
    job.end = END_GPU_OOM; // whose message has the line
    assert_null(job_end_cause(&job, &usage));
    job.end = END_SETUP_FAILED;
    usage.tail = of_setup;
    cause = job_end_cause(&job, &usage);
    assert_string_equal(cause, "Its setup reported: no environment \\x1b[1mfoo");
    free(cause);
    usage.tail = NULL;
    assert_null(job_end_cause(&job, &usage));
    assert_null(job_end_cause(&job, NULL));
}
