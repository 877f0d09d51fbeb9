/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_dir.h"
#include "store/store_schema.h"
#include "store/store_sqlite.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define FLIPS 150

CASE(the_epoch_grows_with_every_open, fixture)
{
    char instance[33];
    memcpy(instance, fixture->summary.instance, sizeof(instance));
    assert_int_equal(strlen(instance), 32);
    for (uint64_t epoch = 1; epoch < 5; epoch++) {
        assert_int_equal(fixture->summary.epoch, epoch);
        fixture_close(fixture);
        fixture_open(fixture);
        assert_string_equal(fixture->summary.instance, instance);
    }
}

CASE(the_summary_tells_the_highest_numbers, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.last_job, 2);
    assert_int_equal(fixture->summary.last_event, 8);
    assert_int_equal(fixture->summary.jobs, 2);
}

CASE(ids_are_not_reused_after_rows_were_removed, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    assert_int_equal(fixture_sql(fixture, "PRAGMA foreign_keys = ON; DELETE FROM jobs"), SQLITE_OK);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.jobs, 0);
    assert_int_equal(fixture->summary.last_job, 2);
}

CASE(a_second_open_is_refused_and_names_the_process, fixture)
{
    struct store *first = take_ptr(fixture->store);
    char pid[32];
    (void)snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
    assert_int_equal(fixture_try_open(fixture), -EBUSY);
    assert_non_null(strstr(fixture->err.message, pid));
    assert_non_null(strstr(fixture->err.hint, "--state-dir"));
    fixture->store = first;
}

CASE(the_directory_and_its_files_are_private, fixture)
{
    static const char *const names[] = { "mgpu.db", "mgpu.db-wal", "mgpu.db-shm", "lock", "reserve" };
    struct stat file;
    assert_int_equal(stat(fixture->dir, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0700);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(stat(fixture_path(fixture, names[i]), &file), 0);
        assert_int_equal(file.st_mode & 07777, 0600);
    }
}

CASE(network_file_systems_are_refused_by_name, fixture)
{
    assert_string_equal(store_dir_unsafe(0x6969), "NFS");
    assert_string_equal(store_dir_unsafe(0x65735546), "FUSE");
    assert_string_equal(store_dir_unsafe(0xff534d42), "CIFS");
    assert_null(store_dir_unsafe(0xef53));     // ext4
    assert_null(store_dir_unsafe(0x01021994)); // tmpfs
    assert_null(store_dir_unsafe(0x794c7630)); // overlayfs
}

CASE(the_directory_of_another_user_is_refused, fixture)
{
    if (geteuid() != 0)
        skip();
    fixture_close(fixture);
    assert_int_equal(chown(fixture->dir, 1234, 1234), 0);
    assert_int_equal(fixture_try_open(fixture), -EPERM);
    assert_non_null(strstr(fixture->err.message, "uid 1234"));
}

CASE(a_file_in_place_of_the_directory_is_refused, fixture)
{
    struct store *store;
    struct store_summary summary;
    const struct store_observer observer = { 0 };
    assert_int_equal(
        store_open(fixture_path(fixture, "mgpu.db"), &observer, &store, &summary, &fixture->err), -ENOTDIR);
}

CASE(a_newer_schema_is_refused_with_both_versions, fixture)
{
    fixture_close(fixture);
    assert_int_equal(fixture_sql(fixture, "PRAGMA user_version = 99"), SQLITE_OK);
    assert_int_equal(fixture_try_open(fixture), -ENOTSUP);
    assert_non_null(strstr(fixture->err.message, "schema 99"));
    _cleanup_free_ char *known = xasprintf("up to %d", store_schema_version());
    assert_non_null(strstr(fixture->err.message, known));
}

CASE(an_empty_database_file_is_refused, fixture)
{
    fixture_close(fixture);
    fixture_put(fixture, "mgpu.db", "", 0);
    assert_int_equal(fixture_try_open(fixture), -EUCLEAN);
    assert_non_null(strstr(fixture->err.message, "empty"));
}

CASE(garbage_in_place_of_the_database_is_refused, fixture)
{
    static const char garbage[8192] = "this is no database at all";
    fixture_close(fixture);
    fixture_put(fixture, "mgpu.db", garbage, sizeof(garbage));
    assert_int_equal(fixture_try_open(fixture), -EUCLEAN);
}

CASE(another_programs_database_is_refused_and_left_alone, fixture)
{
    fixture_close(fixture);
    assert_int_equal(unlink(fixture_path(fixture, "mgpu.db")), 0);
    assert_int_equal(fixture_sql(fixture, "CREATE TABLE things (a)"), SQLITE_OK);
    assert_int_equal(fixture_try_open(fixture), -EUCLEAN);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM sqlite_schema"), 1);
}

CASE(a_truncated_database_is_refused, fixture)
{
    for (uint32_t i = 0; i < 100; i++)
        fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    _cleanup_buffer_ struct buffer whole = { 0 };
    fixture_keep(fixture, "mgpu.db", &whole);
    for (size_t length = 1; length < whole.length; length += 3 * 4096 + 7) {
        fixture_put(fixture, "mgpu.db", whole.bytes, length);
        if (fixture_try_open(fixture) != -EUCLEAN)
            fail_msg("%zu of %zu bytes were taken for a store", length, whole.length);
    }
}

CASE(a_flipped_bit_is_refused_or_leaves_every_job_and_number, fixture)
{
    unsigned refused = 0;
    for (uint32_t i = 0; i < 20; i++)
        fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    _cleanup_buffer_ struct buffer whole = { 0 };
    fixture_keep(fixture, "mgpu.db", &whole);
    srandom(1);
    for (unsigned i = 0; i < FLIPS; i++) {
        size_t bit = (size_t)random() % (whole.length * 8);
        whole.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        fixture_put(fixture, "mgpu.db", whole.bytes, whole.length);
        whole.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        int r = fixture_try_open(fixture);
        if (r == 0 &&
            (fixture->summary.jobs != 20 || fixture->summary.last_job < 20 ||
                fixture->summary.last_event < 80) &&
            fixture_fsck(fixture) == 0)
            fail_msg("bit %zu: %lu jobs, last %lu, event %lu, and fsck finds nothing", bit,
                (unsigned long)fixture->summary.jobs, (unsigned long)fixture->summary.last_job,
                (unsigned long)fixture->summary.last_event);
        if (r < 0 && r != -EUCLEAN && r != -ENOTSUP)
            fail_msg("bit %zu: %s", bit, fixture->err.message);
        refused += r < 0;
        fixture_close(fixture);
        (void)unlink(fixture_path(fixture, "mgpu.db-wal"));
        (void)unlink(fixture_path(fixture, "mgpu.db-shm"));
    }
    assert_true(refused > 0);
}

CASE(what_was_durable_is_there_after_a_crash, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_crash(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.last_event, 4);
    assert_int_equal(fixture->warnings, 0);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(a_removed_log_is_refused, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_crash(fixture);
    assert_int_equal(unlink(fixture_path(fixture, "mgpu.db-wal")), 0);
    assert_int_equal(fixture_try_open(fixture), -EUCLEAN);
    assert_non_null(strstr(fixture->err.message, "mgpu.db-wal"));
}

CASE(a_copy_without_its_log_gives_no_id_out_again, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_crash(fixture);
    assert_int_equal(unlink(fixture_path(fixture, "mgpu.db-wal")), 0);
    assert_int_equal(unlink(fixture_path(fixture, "mgpu.db-shm")), 0);
    fixture_open(fixture);
    assert_true(fixture->summary.last_job >= RESTORE_GAP);
    assert_true(fixture->summary.last_event >= RESTORE_GAP);
    assert_true(fixture->summary.epoch > RESTORE_GAP);
    store_dispatch(fixture->store);
    assert_int_equal(fixture->warnings, 1);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
}

/* Damage that only a look at every page finds, in a file of 80 MB. */
CASE(a_large_file_is_read_whole_after_an_unclean_stop_alone, fixture)
{
    static const uint8_t nonsense[4] = { 0x7f, 0xff, 0xff, 0xff };
    fixture_close(fixture);
    assert_int_equal(
        fixture_sql(fixture, "CREATE TABLE large (a); INSERT INTO large VALUES (zeroblob(80000000))"),
        SQLITE_OK);
    int fd = open(fixture_path(fixture, "mgpu.db"), O_WRONLY | O_CLOEXEC);
    assert_int_equal(
        pwrite(fd, nonsense, sizeof(nonsense), 40 << 20), sizeof(nonsense)); // an overflow page's next
    assert_int_equal(close(fd), 0);
    fixture_open(fixture);
    fixture_close(fixture);
    assert_int_equal(fixture_sql(fixture, "UPDATE meta SET value = 1 WHERE name = 'mark'"), SQLITE_OK);
    assert_int_equal(fixture_try_open(fixture), -EUCLEAN);
}

CASE(a_new_store_has_small_pages, fixture)
{
    assert_int_equal(fixture_number(fixture, "PRAGMA page_size"), 512);
}

/* Those made by earlier versions have pages of 4096 bytes. */
CASE(a_store_keeps_the_size_of_its_pages, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    assert_int_equal(
        fixture_sql(fixture, "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM"), SQLITE_OK);
    fixture_open(fixture);
    for (uint32_t i = 0; i < 100; i++)
        fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture_number(fixture, "PRAGMA page_size"), 4096);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM jobs"), 101);
}

CASE(a_step_of_the_schema_runs_once_and_whole, fixture)
{
    sqlite3 *db = NULL;
    const int now = store_schema_version();
    const struct schema_step steps[] = {
        { now - 1, "CREATE TABLE a (x) STRICT;" }, // seen already, and it would not even parse
        { now, "CREATE TABLE a (x) STRICT;" },
        { now + 1, "CREATE TABLE a (x);" },
        { now + 2, "CREATE TABLE b (x); INSERT INTO nowhere VALUES (1);" },
    };
    fixture_close(fixture);
    assert_int_equal(sqlite3_open(fixture_path(fixture, "mgpu.db"), &db), SQLITE_OK);
    assert_true(store_schema_upgrade(db, steps, 4, &fixture->err) < 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(fixture_number(fixture, "PRAGMA user_version"), now + 1);
    assert_int_equal(
        fixture_number(fixture, "SELECT count(*) FROM sqlite_schema WHERE name IN ('a', 'b')"), 1);
}

CASE(a_start_refuses_open_jobs_that_do_not_follow_from_their_events, fixture)
{
    const struct {
        const char *spoil, *mend, *words;
    } rows[] = {
        { "UPDATE jobs SET uid = uid + 1 WHERE id = 2", "UPDATE jobs SET uid = uid - 1 WHERE id = 2",
            "job 2: 'uid'" },
        { "UPDATE attempts SET token = token + 1 WHERE job = 2",
            "UPDATE attempts SET token = token - 1 WHERE job = 2", "attempt 1 of job 2" },
        { "DELETE FROM gpu_alloc", "SELECT 1", "job 2 (starting) has 0 GPUs allocated" },
    };
    fixture_run_job(fixture, 0);
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    fixture_allocate(fixture, job, 0, 0);
    fixture_commit_all(fixture);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture_close(fixture);
        if (fixture_sql(fixture, rows[i].spoil) != SQLITE_OK)
            fail_msg("%s", rows[i].spoil);
        assert_int_equal(fixture_try_open(fixture), -EUCLEAN);
        if (strstr(fixture->err.message, rows[i].words) == NULL)
            fail_msg("%s", fixture->err.message);
        assert_int_equal(fixture_sql(fixture, rows[i].mend), SQLITE_OK);
        if (i + 1 < sizeof(rows) / sizeof(rows[0]))
            fixture_open(fixture);
    }
}
