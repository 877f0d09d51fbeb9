/* SPDX-License-Identifier: MIT */
/* What follows when a job leaves its GPUs unused. */

#include "base/memory.h"
#include "job/idle.h"
#include "job/job.h"
#include "unit_test.h"

#define MINUTE 60000

static const struct idle_policy site = { .warn_ms = 30 * MINUTE, .yields_ms = 120 * MINUTE };
static const struct idle_policy strict = { .warn_ms = 30 * MINUTE, .end_ms = 60 * MINUTE };

static int make_job(void **state)
{
    struct job *job = xcalloc(1, sizeof(*job));
    job->state = JOB_RUNNING;
    job->ask = ask_shared_new(&(struct job_ask){ .gpus = 1 });
    (void)gpu_grants_add(&job->grants, 0, "GPU-0", 0, 0);
    *state = job;
    return 0;
}

static int drop_job(void **state)
{
    job_free(*state);
    return 0;
}

#define CASE(name, job) TEST_ON(name, struct job *job, make_job, drop_job)

static enum idle_level judge(const struct idle_policy *policy, struct job *job, int64_t idle_minutes)
{
    bool is_over = false;
    enum idle_level level = idle_judge(policy, job, idle_minutes * MINUTE, 1000, &is_over);
    assert_false(is_over);
    return level;
}

CASE(a_job_is_told_first_and_yields_later, job)
{
    assert_int_equal(judge(&site, job, 0), IDLE_NONE);
    assert_int_equal(judge(&site, job, 29), IDLE_NONE);
    assert_int_equal(judge(&site, job, 30), IDLE_WARNED);
    assert_int_equal(judge(&site, job, 119), IDLE_WARNED);
    assert_int_equal(judge(&site, job, 120), IDLE_YIELDS);
}

CASE(nothing_follows_where_nobody_wants_it, job)
{
    const struct idle_policy none = { 0 };
    assert_int_equal(judge(&none, job, 100000), IDLE_NONE);
}

CASE(an_exempt_job_may_be_idle_for_ever, job)
{
    job_set_ask(job, &(struct job_ask){ .gpus = 1, .idle_ok = true });
    assert_int_equal(judge(&strict, job, 100000), IDLE_NONE);
    assert_int_equal(idle_end_ms(&strict, job), 0);
}

CASE(only_running_jobs_whose_gpus_are_all_seen_are_judged, job)
{
    job->state = JOB_STOPPING;
    assert_int_equal(judge(&site, job, 200), IDLE_NONE);
    job->state = JOB_RUNNING;
    gpu_grants_add(&job->grants, 0, "GPU-far", 0, 0)->node = xstrdup("other");
    assert_int_equal(judge(&site, job, 200), IDLE_NONE);
    gpu_grants_clear(&job->grants);
    assert_int_equal(judge(&site, job, 200), IDLE_NONE);
}

CASE(the_shorter_of_the_sites_and_the_jobs_own_time_ends_it, job)
{
    assert_int_equal(idle_end_ms(&site, job), 0);
    job_set_ask(job, &(struct job_ask){ .gpus = 1, .idle_timeout_ms = 20 * MINUTE });
    assert_int_equal(idle_end_ms(&site, job), 20 * MINUTE);
    assert_int_equal(idle_end_ms(&strict, job), 20 * MINUTE);
    job_set_ask(job, &(struct job_ask){ .gpus = 1, .idle_timeout_ms = 600 * MINUTE });
    assert_int_equal(idle_end_ms(&strict, job), 60 * MINUTE);
}

CASE(a_job_is_told_before_it_is_ended, job)
{
    bool is_over = false;
    job_set_ask(job, &(struct job_ask){ .gpus = 1, .idle_timeout_ms = 20 * MINUTE });
    assert_int_equal(judge(&site, job, 14), IDLE_NONE);
    assert_int_equal(judge(&site, job, 15), IDLE_WARNED);
    job->idle_level = IDLE_WARNED;
    job_make_run(job)->idle_warned_ms = 1000;
    (void)idle_judge(&site, job, 20 * MINUTE - 1, 1000 + 5 * MINUTE, &is_over);
    assert_false(is_over);
    (void)idle_judge(&site, job, 20 * MINUTE, 1000 + 5 * MINUTE, &is_over);
    assert_true(is_over);
}

CASE(a_job_that_could_not_be_told_in_time_still_gets_its_notice, job)
{
    bool is_over = false;
    assert_int_equal(judge(&strict, job, 500), IDLE_WARNED);
    job->idle_level = IDLE_WARNED;
    job_make_run(job)->idle_warned_ms = 1000;
    (void)idle_judge(&strict, job, 500 * MINUTE, 999 + 10 * MINUTE, &is_over);
    assert_false(is_over);
    (void)idle_judge(&strict, job, 500 * MINUTE, 1000 + 10 * MINUTE, &is_over);
    assert_true(is_over);
}

CASE(levels_have_names, job)
{
    assert_null(idle_level_name(IDLE_NONE));
    assert_string_equal(idle_level_name(IDLE_WARNED), "told");
    assert_string_equal(idle_level_name(IDLE_YIELDS), "yields");
    assert_null(idle_level_name(IDLE_LEVELS));
}
