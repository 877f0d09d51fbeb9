/* SPDX-License-Identifier: MIT */
/* What a start makes of a write-ahead log that is damaged, cut short, or not finished. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store_ids.h"
#include "store/store_log.h"
#include "store/store_sqlite.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define JOBS       12
#define FLIPS      200
#define LOG_HEADER 32
#define FRAME      (24 + 1024)

/* The files of a store with this number of jobs, each in its own commit, whose daemon was killed. */
struct wreck {
    struct buffer db, log, index;
};

static void make_wreck(struct fixture *fixture, struct wreck *wreck)
{
    for (unsigned i = 0; i < JOBS; i++) {
        fixture_run_job(fixture, 0);
        fixture_commit_all(fixture);
    }
    fixture_crash(fixture);
    *wreck = (struct wreck){ { 0 }, { 0 }, { 0 } };
    fixture_keep(fixture, STORE_DATABASE, &wreck->db);
    fixture_keep(fixture, STORE_LOG, &wreck->log);
    fixture_keep(fixture, STORE_LOG_INDEX, &wreck->index);
}

static void clear_wreck(struct wreck *wreck)
{
    buffer_clear(&wreck->db);
    buffer_clear(&wreck->log);
    buffer_clear(&wreck->index);
}

#define _cleanup_wreck_ _cleanup_(clear_wreck)

/* Opens what the crash left, with these bytes as the log. */
static int open_wreck(
    struct fixture *fixture, const struct wreck *wreck, const void *log, size_t length, bool has_index)
{
    fixture_close(fixture);
    fixture_put(fixture, STORE_DATABASE, wreck->db.bytes, wreck->db.length);
    fixture_put(fixture, STORE_LOG, log, length);
    if (has_index)
        fixture_put(fixture, STORE_LOG_INDEX, wreck->index.bytes, wreck->index.length);
    else
        (void)unlink(fixture_path(fixture, STORE_LOG_INDEX));
    return fixture_try_open(fixture);
}

CASE(a_killed_daemon_leaves_a_log_that_is_read_without_a_gap, fixture)
{
    _cleanup_wreck_ struct wreck wreck;
    make_wreck(fixture, &wreck);
    assert_int_equal(open_wreck(fixture, &wreck, wreck.log.bytes, wreck.log.length, true), 0);
    assert_int_equal(fixture->summary.jobs, JOBS);
    assert_int_equal(fixture->summary.last_job, JOBS);
    assert_int_equal(fixture->summary.last_event, JOBS * 4);
}

CASE(a_flipped_bit_in_the_log_is_refused, fixture)
{
    _cleanup_wreck_ struct wreck wreck;
    make_wreck(fixture, &wreck);
    srandom(1);
    for (unsigned i = 0; i < FLIPS; i++) {
        size_t bit = (size_t)random() % (wreck.log.length * 8);
        wreck.log.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        int r = open_wreck(fixture, &wreck, wreck.log.bytes, wreck.log.length, true);
        wreck.log.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        if (r != -EUCLEAN)
            fail_msg("bit %zu of the log: %d, %lu jobs", bit, r, (unsigned long)fixture->summary.jobs);
        assert_non_null(strstr(fixture->err.message, STORE_LOG));
        assert_non_null(strstr(fixture->err.hint, "truncate"));
    }
}

/* Then the last transaction may be one that was never acknowledged. */
CASE(without_its_index_a_damaged_log_loses_the_last_commit_at_most_and_no_id, fixture)
{
    _cleanup_wreck_ struct wreck wreck;
    make_wreck(fixture, &wreck);
    srandom(2);
    for (unsigned i = 0; i < FLIPS; i++) {
        size_t bit = (size_t)random() % (wreck.log.length * 8);
        wreck.log.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        int r = open_wreck(fixture, &wreck, wreck.log.bytes, wreck.log.length, false);
        wreck.log.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        if (r == -EUCLEAN)
            continue;
        if (r != 0 || fixture->summary.jobs < JOBS - 1 || fixture->summary.last_job < JOBS)
            fail_msg("bit %zu of the log: %d, %lu jobs, last %lu", bit, r,
                (unsigned long)fixture->summary.jobs, (unsigned long)fixture->summary.last_job);
    }
}

CASE(a_log_that_was_cut_is_refused, fixture)
{
    _cleanup_wreck_ struct wreck wreck;
    make_wreck(fixture, &wreck);
    for (size_t length = LOG_HEADER; length < wreck.log.length; length += FRAME / 2)
        if (open_wreck(fixture, &wreck, wreck.log.bytes, length, true) != -EUCLEAN)
            fail_msg("%zu of %zu bytes were taken for the log", length, wreck.log.length);
}

CASE(a_log_that_was_cut_with_its_index_gone_costs_no_id, fixture)
{
    _cleanup_wreck_ struct wreck wreck;
    make_wreck(fixture, &wreck);
    for (size_t length = LOG_HEADER; length < wreck.log.length; length += FRAME / 2) {
        assert_int_equal(open_wreck(fixture, &wreck, wreck.log.bytes, length, false), 0);
        if (fixture->summary.last_job < JOBS)
            fail_msg("%zu bytes: the next job is %lu", length, (unsigned long)fixture->summary.last_job + 1);
    }
}

CASE(a_transaction_that_was_being_written_is_no_damage, fixture)
{
    _cleanup_wreck_ struct wreck wreck;
    make_wreck(fixture, &wreck);
    /* The frames of a commit that was interrupted by a kill: the right salts, and invalid data after them. */
    for (size_t extra = 12; extra < 3 * FRAME; extra += FRAME / 2) {
        _cleanup_buffer_ struct buffer log = { 0 };
        buffer_append(&log, wreck.log.bytes, wreck.log.length);
        buffer_append(&log, wreck.log.bytes + LOG_HEADER, extra);
        assert_int_equal(open_wreck(fixture, &wreck, log.bytes, log.length, true), 0);
        assert_int_equal(fixture->summary.jobs, JOBS);
        assert_int_equal(fixture->summary.last_job, JOBS);
    }
}

CASE(the_hint_leads_to_a_store_without_what_was_lost, fixture)
{
    _cleanup_wreck_ struct wreck wreck;
    make_wreck(fixture, &wreck);
    size_t middle = LOG_HEADER + wreck.log.length / FRAME / 2 * FRAME + 100;
    wreck.log.bytes[middle] ^= 1;
    assert_int_equal(open_wreck(fixture, &wreck, wreck.log.bytes, wreck.log.length, true), -EUCLEAN);
    const char *command = strstr(fixture->err.hint, "cd ");
    assert_non_null(command);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): it is what a person would type
    fixture_open(fixture);
    assert_true(fixture->summary.jobs > 0 && fixture->summary.jobs < JOBS);
    assert_true(fixture->summary.last_job >= JOBS);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(fsck_says_that_the_log_is_damaged, fixture)
{
    _cleanup_wreck_ struct wreck wreck;
    make_wreck(fixture, &wreck);
    wreck.log.bytes[wreck.log.length / 2] ^= 1;
    fixture_put(fixture, STORE_LOG, wreck.log.bytes, wreck.log.length);
    assert_int_equal(store_fsck(fixture->dir, NULL, NULL, NULL, &fixture->err), -EUCLEAN);
    assert_non_null(strstr(fixture->err.message, STORE_LOG));
}

/* The database file alone, as after the loss of the whole log. */
CASE(ids_are_in_the_database_file_before_they_are_given_out, fixture)
{
    for (unsigned i = 0; i < 2 * STORE_ID_BLOCK + 10; i++)
        job_free(fixture_submit(fixture, NULL));
    fixture_commit_all(fixture);
    _cleanup_buffer_ struct buffer db = { 0 };
    fixture_keep(fixture, STORE_DATABASE, &db);
    fixture_close(fixture);
    fixture_put(fixture, STORE_DATABASE, db.bytes, db.length);
    assert_true(
        fixture_number(fixture, "SELECT value FROM meta WHERE name = 'reserved'") >= 2 * STORE_ID_BLOCK + 10);
}
