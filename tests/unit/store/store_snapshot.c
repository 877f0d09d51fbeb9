/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_schema.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define MANY 3000

static void take_one(struct fixture *fixture)
{
    fixture_snapshot(fixture);
    assert_int_equal(fixture->verification.findings, 0);
    fixture_close(fixture);
    fixture_open(fixture);
}

static bool exists(struct fixture *fixture, const char *name)
{
    return access(fixture_path(fixture, name), F_OK) == 0;
}

static void restore(struct fixture *fixture, const char *name)
{
    char from[256];
    (void)snprintf(from, sizeof(from), "%s", fixture_path(fixture, name));
    (void)unlink(fixture_path(fixture, "mgpu.db-wal"));
    (void)unlink(fixture_path(fixture, "mgpu.db-shm"));
    assert_int_equal(rename(from, fixture_path(fixture, "mgpu.db")), 0);
}

CASE(the_three_latest_snapshots_are_kept, fixture)
{
    for (int i = 0; i < 5; i++)
        take_one(fixture);
    assert_false(exists(fixture, "backup/mgpu-00000001.db"));
    assert_false(exists(fixture, "backup/mgpu-00000002.db"));
    assert_true(exists(fixture, "backup/mgpu-00000003.db"));
    assert_true(exists(fixture, "backup/mgpu-00000005.db"));
    assert_false(exists(fixture, "backup/unfinished.db"));
    assert_false(exists(fixture, "backup/unfinished.db-wal"));
}

CASE(a_snapshot_is_private, fixture)
{
    struct stat file;
    take_one(fixture);
    assert_int_equal(stat(fixture_path(fixture, "backup"), &file), 0);
    assert_int_equal(file.st_mode & 07777, 0700);
    assert_int_equal(stat(fixture_path(fixture, "backup/mgpu-00000001.db"), &file), 0);
    assert_int_equal(file.st_mode & 07777, 0600);
}

CASE(a_restored_snapshot_has_its_jobs_and_gives_no_number_out_again, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    take_one(fixture);
    uint64_t epoch = fixture->summary.epoch;
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    restore(fixture, "backup/mgpu-00000001.db");
    fixture_open(fixture);
    assert_int_equal(fixture->summary.jobs, 1);
    assert_true(fixture->summary.last_job >= 1 + RESTORE_GAP);
    assert_true(fixture->summary.is_old_copy);
    assert_true(fixture->summary.last_event >= 4 + RESTORE_GAP);
    assert_true(fixture->summary.epoch > epoch);
    uint64_t last_job = fixture->summary.last_job;
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.last_job, last_job + 1); // the gap comes once
}

/* A node has shown that the store is an older copy. */
CASE(numbers_that_are_skipped_stay_skipped, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    fixture_open(fixture);
    const struct store_summary before = fixture->summary;
    fixture->batch = store_batch_new(++fixture->next_batch);
    store_batch_skip(fixture->batch, 5000);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.epoch, before.epoch + 5000 + 1);
    assert_int_equal(fixture->summary.last_job, before.last_job + 5000);
    assert_int_equal(fixture->summary.last_event, before.last_event + 5000);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(commits_made_while_a_snapshot_is_made_keep_it_whole, fixture)
{
    for (uint32_t i = 0; i < MANY; i++)
        fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_snapshot(fixture->store);
    for (uint32_t i = 0; i < 200; i++) {
        fixture_run_job(fixture, 0);
        fixture_commit_all(fixture);
    }
    fixture_dispatch_until(fixture, &fixture->is_verified);
    fixture_close(fixture);
    assert_int_equal(fixture->warnings, 0);
    restore(fixture, "backup/mgpu-00000001.db");
    fixture_open(fixture);
    assert_true(fixture->summary.jobs >= MANY);
    if (fixture_fsck(fixture) != 0)
        fail_msg("%s", fixture->finding);
}

CASE(a_snapshot_reports_its_progress_and_its_end, fixture)
{
    for (uint32_t i = 0; i < MANY; i++)
        fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture->reports = fixture->ends = 0;
    fixture_snapshot(fixture);
    assert_true(fixture->reports >= 3); // of pages, and of the check
    assert_int_equal(fixture->ends, 1);
}

CASE(a_snapshot_that_cannot_be_made_is_a_warning, fixture)
{
    FILE *file = fopen(fixture_path(fixture, "backup"), "w");
    assert_non_null(file);
    (void)fclose(file);
    fixture_snapshot(fixture); // until the warning
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture->warnings, 1);
    assert_non_null(strstr(fixture->warning.message, "backup"));
    assert_false(fixture->has_failed);
}

CASE(a_missing_database_beside_a_snapshot_is_refused_with_the_way_back, fixture)
{
    take_one(fixture);
    fixture_close(fixture);
    assert_int_equal(unlink(fixture_path(fixture, "mgpu.db")), 0);
    assert_int_equal(fixture_try_open(fixture), -EUCLEAN);
    assert_non_null(strstr(fixture->err.hint, "cp -p backup/mgpu-00000001.db mgpu.db"));
}

CASE(damage_is_refused_with_the_way_back, fixture)
{
    take_one(fixture);
    fixture_close(fixture);
    assert_int_equal(truncate(fixture_path(fixture, "mgpu.db"), 5000), 0);
    assert_int_equal(fixture_try_open(fixture), -EUCLEAN);
    assert_non_null(strstr(fixture->err.hint, "cp -p backup/mgpu-00000001.db mgpu.db"));
}
