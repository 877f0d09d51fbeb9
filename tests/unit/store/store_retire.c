/* SPDX-License-Identifier: MIT */
/* Old jobs are removed from the store; their GPU time stays in the sums. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "ended_fixture.h"
#include "store/store_ended.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define DAY     INT64_C(86400000)
#define FOREVER UINT64_MAX

struct heard {
    bool is_done;
    uint64_t jobs;
};

static void on_retired(void *arg, uint64_t jobs)
{
    struct heard *heard = arg;
    heard->jobs = jobs;
    heard->is_done = true;
}

static uint64_t retire(struct fixture *fixture, int64_t before_ms, uint64_t keep_max)
{
    struct heard heard = { 0 };
    store_retire(fixture->store, before_ms, keep_max, NULL, on_retired, &heard);
    fixture_dispatch_until(fixture, &heard.is_done);
    return heard.jobs;
}

/* One job a day, from day 1 on, two GPU-seconds each, one of them used. */
static void fill(struct fixture *fixture, int count)
{
    for (int64_t day = 1; day <= count; day++)
        (void)ended_add(fixture, &(struct past_job){ .uid = 1,
                                     .gid = 2,
                                     .submitted_ms = day * DAY,
                                     .started_ms = day * DAY,
                                     .ended_ms = day * DAY + 2000,
                                     .gpus = 1,
                                     .has_usage = true,
                                     .utilization_milli = 500 });
}

CASE(old_jobs_leave_with_all_that_was_about_them, fixture)
{
    fill(fixture, 4);
    assert_int_equal(retire(fixture, 3 * DAY, FOREVER), 2);
    assert_int_equal(fixture_number(fixture, "SELECT min(id) FROM jobs"), 3);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM events WHERE job < 3"), 0);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM specs"), 2);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM attempts"), 2);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM submit_keys"), 2);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM ended"), 2);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(the_newest_stay_however_old_they_are, fixture)
{
    fill(fixture, 5);
    assert_int_equal(retire(fixture, 0, 2), 3);
    assert_int_equal(fixture_number(fixture, "SELECT min(id) FROM jobs"), 4);
    assert_int_equal(retire(fixture, 0, 2), 0);
    assert_int_equal(retire(fixture, 5 * DAY, 2), 1);
    assert_int_equal(retire(fixture, 0, 0), 1);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM jobs"), 0);
    assert_int_equal(fixture_fsck(fixture), 0);
}

static void on_sums(void *arg, const struct ended_sum *sums, size_t count, bool is_cut)
{
    assert_int_equal(count, 1);
    assert_int_equal(sums[0].jobs, 70);
    assert_int_equal(sums[0].held_ms, 70 * 2000);
    assert_int_equal(sums[0].measured_ms, 70 * 2000);
    assert_int_equal(sums[0].used_ms, 70 * 1000);
    *(bool *)arg = true;
}

CASE(what_they_held_and_used_stays_in_the_sums, fixture)
{
    const struct ended_filter filter = { .until_ms = INT64_MAX };
    fill(fixture, 70);
    for (int64_t before = 0; before <= 71 * DAY; before += 69 * DAY) {
        bool is_done = false;
        (void)retire(fixture, before, FOREVER);
        store_sum_ended(fixture->store, &filter, ENDED_BY_USER, on_sums, &is_done);
        fixture_dispatch_until(fixture, &is_done);
    }
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM kept_days"), 68);
}

CASE(what_has_not_ended_stays, fixture)
{
    job_free(fixture_submit(fixture, NULL)); // it waits
    _cleanup_(job_freep) struct job *running = fixture_submit(fixture, NULL);
    fixture_allocate(fixture, running, 1, 0);
    fixture_event(fixture, running, EVENT_STARTED);
    fixture_commit_all(fixture);
    assert_int_equal(retire(fixture, INT64_MAX, 0), 0);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM jobs"), 2);
    assert_int_equal(fixture_sql(fixture, "DELETE FROM jobs"), SQLITE_CONSTRAINT);
    assert_int_equal(fixture_sql(fixture, "DELETE FROM events"), SQLITE_CONSTRAINT);
}

CASE(numbers_never_come_again, fixture)
{
    fill(fixture, 3);
    uint64_t last_event = fixture->next_seq - 1;
    assert_int_equal(retire(fixture, INT64_MAX, FOREVER), 3);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.last_job, 3);
    assert_int_equal(fixture->summary.last_event, last_event);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_number(fixture, "SELECT id FROM jobs"), 4);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(a_kill_in_between_leaves_whole_jobs_and_whole_sums, fixture)
{
    fill(fixture, 100);
    fixture_close(fixture);
    for (int kill_after = 1; kill_after <= 3; kill_after++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct heard heard = { 0 };
            fixture_open(fixture);
            store_retire(fixture->store, INT64_MAX, FOREVER, NULL, on_retired, &heard);
            /* The batch that is asked for by the last of these may or may not be done. */
            for (int batch = 0; batch < kill_after && !heard.is_done; batch++)
                fixture_dispatch_once(fixture);
            (void)kill(getpid(), SIGKILL);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(fixture_fsck(fixture), 0);
        assert_int_equal(
            fixture_number(fixture,
                "SELECT (SELECT count(*) FROM ended) + (SELECT ifnull(sum(jobs), 0) FROM kept_days)"),
            100);
        assert_int_equal(
            fixture_number(fixture, "SELECT (SELECT sum(held_ms) FROM (SELECT held_ms FROM ended UNION ALL"
                                    " SELECT held_ms FROM kept_days))"),
            100 * 2000);
    }
}

/* The elements have their specification from the array. */
CASE(an_array_leaves_after_its_elements, fixture)
{
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "true");
    spec.cwd = xstrdup("/tmp");
    spec.ask.array = xstrdup("3");
    _cleanup_(job_freep) struct job *array = fixture_submit(fixture, &spec);
    _cleanup_(job_freep) struct job *element = job_new(fixture->next_job++, &spec);
    fixture_apply(
        fixture, array, &(struct job_event){ .type = EVENT_SPLIT, .array_index = 3, .element = element->id });
    fixture_apply(fixture, element,
        &(struct job_event){ .type = EVENT_SUBMITTED, .array_job = array->id, .array_index = 3 });
    fixture_event(fixture, element, EVENT_STOP);
    fixture_apply(fixture, array,
        &(struct job_event){
            .type = EVENT_MEMBER, .array_index = 3, .element = element->id, .end = END_CANCELLED });
    fixture_commit_all(fixture);
    job_spec_clear(&spec);
    assert_int_equal(array->state, JOB_DONE);
    assert_int_equal(fixture_fsck(fixture), 0);
    /* The array ended no later than its element does here. */
    assert_int_equal(fixture_sql(fixture, "UPDATE ended SET ended_ms = 0 WHERE is_array"), SQLITE_OK);
    assert_int_equal(retire(fixture, 1, FOREVER), 0);
    assert_int_equal(retire(fixture, INT64_MAX, FOREVER), 2);
    assert_int_equal(fixture_number(fixture, "SELECT sum(jobs) FROM kept_days"), 1);
    assert_int_equal(fixture_fsck(fixture), 0);
}

/* What a job that waits depends on is asked for at the next start. */
CASE(a_job_that_another_waits_for_stays, fixture)
{
    struct heard heard = { 0 };
    for (unsigned i = 0; i < 40; i++)
        fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_retire(fixture->store, INT64_MAX, FOREVER, "3,17", on_retired, &heard);
    fixture_dispatch_until(fixture, &heard.is_done);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM jobs"), 2);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM jobs WHERE id IN (3, 17)"), 2);
    assert_int_equal(fixture_fsck(fixture), 0);
}
