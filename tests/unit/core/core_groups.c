/* SPDX-License-Identifier: MIT */
/* A job counts for a group that it need not run with. */
#include "bench.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_four, bench_close)

static int one, two, three;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

#define LAB 555

/* A group may use two GPUs at a time. */
static void limit_groups(struct bench *b)
{
    b->options.sched.group_limits.gpu_milli = 2000;
    bench_configure(b);
}

static uint64_t submit_array(struct bench *b)
{
    struct job_spec *spec = bench_spec("sleep");
    spec->ask.array = xstrdup("0-3");
    spec->ask.gpus = 1;
    bench_submit_spec(b, &owner, spec, &three);
    return bench_answer(b, &three)->job;
}

CASE(users_of_a_group_have_its_limit_together_and_run_with_their_own, b)
{
    limit_groups(b);
    b->group = LAB;
    bench_submit(b, 1000, 2, NULL, &one);
    bench_submit(b, 1001, 1, NULL, &two);
    bench_settle(b);
    uint64_t first = bench_answer(b, &one)->job, second = bench_answer(b, &two)->job;
    assert_int_equal(job_group(core_job(b->core, first)), LAB);
    assert_int_equal(core_job(b->core, first)->gid, 1000);
    assert_int_equal(bench_sent(b, MESSAGE_LAUNCH, first)->gid, 1000);
    assert_null(bench_sent(b, MESSAGE_LAUNCH, second));
    bench_submit(b, 1000, 3, NULL, &three);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &three)->code, -ERANGE);
    assert_non_null(strstr(bench_answer(b, &three)->err.message, "the limit of its group is 2"));
    assert_int_equal(bench_exited(b, 1, bench_sent(b, MESSAGE_LAUNCH, first), END_EXIT, 0), 0);
    bench_settle(b);
    assert_int_equal(bench_sent(b, MESSAGE_LAUNCH, second)->gid, 1001);
}

CASE(elements_count_for_the_group_of_their_array, b)
{
    limit_groups(b);
    b->group = LAB;
    uint64_t array = submit_array(b);
    b->group = 0; // that of the process counts for what is submitted from here on
    assert_int_equal(job_group(core_job(b->core, array + 2)), LAB);
    assert_int_equal(core_job(b->core, array + 2)->gid, 1000);
    assert_string_equal(core_job(b->core, array)->array_left, "2-3");
    bench_submit(b, 1000, 2, NULL, &one);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, bench_answer(b, &one)->job));
    assert_int_equal(bench_exited(b, 1, bench_sent(b, MESSAGE_LAUNCH, array + 1), END_EXIT, 0), 0);
    bench_settle(b);
    const struct job *late = core_job(b->core, bench_answer(b, &one)->job + 1);
    assert_int_equal(late->array_job, array);
    assert_int_equal(job_group(late), LAB);
}

CASE(the_group_is_kept_over_a_restart, b)
{
    limit_groups(b);
    for (uint32_t group = 0; group <= LAB; group += LAB) {
        b->group = group;
        bench_submit(b, 1000, 2, NULL, &one);
        bench_settle(b);
        uint64_t job = bench_answer(b, &one)->job;
        struct job *stored = bench_stored(b, job);
        uint32_t wanted = group == 0 ? 1000 : LAB;
        assert_int_equal(job_group(stored), wanted);
        b->group = 7;
        bench_restart(b, stored);
        assert_int_equal(job_group(core_job(b->core, job)), wanted);
        assert_int_equal(core_job(b->core, job)->gid, 1000);
        b->n_answers = 0;
    }
}

CASE(group_zero_is_a_group, b)
{
    const struct job root = { .gid = 1000, .account = 1 }, older = { .gid = 1000 };
    assert_int_equal(job_group(&root), 0);
    assert_int_equal(job_group(&older), 1000);
}
