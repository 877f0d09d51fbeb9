/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "store/store_sqlite.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

CASE(a_committed_batch_is_reported_durable, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture->durable, 1);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(batches_are_reported_in_the_order_they_were_handed_over, fixture)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < 500; i++) {
        fixture_run_job(fixture, i % 8);
        last = fixture_commit(fixture);
    }
    assert_true(fixture_wait(fixture, last));
    assert_false(fixture->is_out_of_order);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM events"), 2000);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(an_empty_batch_is_durable_too, fixture)
{
    fixture->batch = store_batch_new(++fixture->next_batch);
    assert_int_equal(store_batch_count(fixture->batch), 0);
    fixture_commit_all(fixture);
}

CASE(a_requeued_job_has_an_attempt_for_each_try, fixture)
{
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    fixture_allocate(fixture, job, 0, 0);
    fixture_event(fixture, job, EVENT_RETURNED);
    fixture_allocate(fixture, job, 1, 0);
    fixture_event(fixture, job, EVENT_STARTED);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM attempts"), 2);
    assert_int_equal(fixture_number(fixture, "SELECT gpu FROM gpu_alloc"), 1);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(every_path_through_the_states_folds_to_its_row, fixture)
{
    static const enum job_event_type paths[][5] = {
        { EVENT_STOP, EVENT_TYPES },
        { EVENT_ENDED, EVENT_TYPES },
        { EVENT_ALLOCATED, EVENT_STOP, EVENT_RETURNED, EVENT_TYPES },
        { EVENT_ALLOCATED, EVENT_STOP, EVENT_STARTED, EVENT_ENDED, EVENT_TYPES },
        { EVENT_ALLOCATED, EVENT_RETURNED, EVENT_ENDED, EVENT_TYPES },
        { EVENT_ALLOCATED, EVENT_RETURNED, EVENT_STOP, EVENT_TYPES },
        { EVENT_ALLOCATED, EVENT_STARTED, EVENT_STOP, EVENT_ENDED, EVENT_TYPES },
        { EVENT_ALLOCATED, EVENT_STOP, EVENT_STOP, EVENT_ENDED, EVENT_TYPES },
        { EVENT_ALLOCATED, EVENT_ENDED, EVENT_TYPES },
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
        for (size_t k = 0; k < 5 && paths[i][k] != EVENT_TYPES; k++) {
            if (paths[i][k] == EVENT_ALLOCATED)
                fixture_allocate(fixture, job, 0, 0);
            else
                fixture_event(fixture, job, paths[i][k]);
            fixture_commit_all(fixture);
            if (fixture_fsck(fixture) != 0)
                fail_msg("path %zu, step %zu: %s", i, k, fixture->finding);
        }
        assert_int_equal(job->state, JOB_DONE);
    }
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM gpu_alloc"), 0);
}

static void keep(void *arg, struct job *job)
{
    struct job **kept = arg;
    job_free(*kept);
    *kept = job;
}

CASE(the_terms_of_a_stop_are_read_back, fixture)
{
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL), *read = NULL;
    fixture_allocate(fixture, job, 0, 0);
    struct job_event stop = {
        .type = EVENT_STOP, .stop_terms = STOP_TERMS_GRACE | STOP_TERMS_PROCESS, .stop_grace_ms = 86400000
    };
    fixture_apply(fixture, job, &stop);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    assert_int_equal(store_load_jobs(fixture->store, 9, keep, &read, &fixture->err), 0);
    assert_int_equal(job_run(read)->stop_terms, STOP_TERMS_GRACE | STOP_TERMS_PROCESS);
    assert_int_equal(job_run(read)->stop_grace_ms, 86400000);
}

/* Books GPU 0 for two jobs at once; the second booking is in a separate batch. */
static void book_twice(struct fixture *fixture, uint32_t first_slot, uint32_t second_slot)
{
    _cleanup_(job_freep) struct job *first = fixture_submit(fixture, NULL);
    _cleanup_(job_freep) struct job *second = fixture_submit(fixture, NULL);
    fixture_allocate(fixture, first, 0, first_slot);
    fixture_commit_all(fixture);
    fixture_allocate(fixture, second, 0, second_slot);
    (void)fixture_wait(fixture, fixture_commit(fixture));
}

CASE(the_database_refuses_a_gpu_given_out_twice, fixture)
{
    book_twice(fixture, 0, 0);
    assert_true(fixture->has_failed);
    assert_int_equal(fixture->failed_batch, 2);
    assert_non_null(strstr(fixture->failure.message, "GPU 0 of node1"));
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM gpu_alloc"), 1);
}

CASE(the_database_refuses_the_same_share_twice, fixture)
{
    book_twice(fixture, 1, 1);
    assert_true(fixture->has_failed);
}

CASE(the_database_refuses_a_share_beside_an_exclusive_booking, fixture)
{
    book_twice(fixture, 0, 1);
    assert_true(fixture->has_failed);
    assert_non_null(strstr(fixture->failure.message, "held exclusively"));
}

CASE(the_database_refuses_an_exclusive_booking_beside_a_share, fixture)
{
    book_twice(fixture, 1, 0);
    assert_true(fixture->has_failed);
    assert_non_null(strstr(fixture->failure.message, "held exclusively"));
}

CASE(two_shares_of_a_gpu_stand_side_by_side, fixture)
{
    book_twice(fixture, 1, 2);
    assert_false(fixture->has_failed);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(a_failed_store_answers_nothing_more, fixture)
{
    book_twice(fixture, 0, 0);
    assert_true(fixture->has_failed);
    fixture->has_failed = false;
    uint64_t durable = fixture->durable;
    fixture_run_job(fixture, 5);
    (void)fixture_commit(fixture);
    store_snapshot(fixture->store);
    store_dispatch(fixture->store);
    assert_int_equal(fixture->durable, durable);
    assert_false(fixture->has_failed);
}

CASE(a_job_id_is_never_taken_twice, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture->next_job = 1;
    fixture_run_job(fixture, 0);
    assert_false(fixture_wait(fixture, fixture_commit(fixture)));
    assert_true(fixture->has_failed);
}

CASE(events_grow_and_are_never_altered, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_sql(fixture, "UPDATE events SET wall_ms = 0"), SQLITE_CONSTRAINT);
    assert_int_equal(fixture_sql(fixture, "DELETE FROM events"), SQLITE_CONSTRAINT);
    fixture->next_seq = 3;
    fixture_run_job(fixture, 0);
    assert_false(fixture_wait(fixture, fixture_commit(fixture)));
}

CASE(a_change_of_an_unknown_job_fails, fixture)
{
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    store_batch_free(take_ptr(fixture->batch));
    fixture_event(fixture, job, EVENT_STOP);
    assert_false(fixture_wait(fixture, fixture_commit(fixture)));
    assert_non_null(strstr(fixture->failure.message, "job 1 does not exist"));
}
