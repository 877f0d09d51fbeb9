/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_ended.h"
#include "store/store_schema.h"
#include "store/store_sqlite.h"
#include "store_fixture.h"
#include "unit_test.h"

#define ENTRIES_MAX 4096

/* A log in memory, and the store of a standby. */
struct log {
    struct store_entry entries[ENTRIES_MAX];
    size_t count;
    int failure;  // of the next append; 0: none
    bool is_late; // the entry that fails is in the log nevertheless
    char standby[80];
};

static int append(void *arg, const struct store_entry *entry, struct error *err)
{
    struct log *log = arg;
    int r = log->failure;
    if (r == 0 || log->is_late) {
        assert_true(log->count < ENTRIES_MAX);
        struct store_entry *copy = &log->entries[log->count++];
        *copy = *entry;
        copy->changes = memcpy(xcalloc(1, entry->length), entry->changes, entry->length);
    }
    return r == 0 ? 0 : error_set(err, r, "the log does not answer");
}

static void on_durable(void *arg, uint64_t batch)
{
    ((struct fixture *)arg)->durable = batch;
}

static void on_failed(void *arg, uint64_t batch, const struct error *err)
{
    struct fixture *fixture = arg;
    fixture->has_failed = true;
    fixture->failed_batch = batch;
    fixture->failure = *err;
}

static struct log the_log;
static const struct store_log_writer writer = { .arg = &the_log, .append = append };

static int lead(struct fixture *fixture)
{
    const struct store_observer observer = {
        .arg = fixture, .on_durable = on_durable, .on_failed = on_failed
    };
    int r = store_open_leading(
        fixture->dir, &observer, &writer, &fixture->store, &fixture->summary, &fixture->err);
    if (r == 0)
        fixture->next_seq = fixture->summary.last_event + 1;
    return r;
}

static void copy_store(struct fixture *fixture)
{
    struct store_position position;
    char path[100];
    assert_int_equal(mkdir(the_log.standby, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/incoming.db", the_log.standby);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(store_replica_copy(fixture->dir, path, &position, &fixture->err), 0);
    assert_int_equal(store_replica_install(the_log.standby, "incoming.db", &fixture->err), 0);
}

static int setup(void **state)
{
    int r = fixture_setup(state);
    struct fixture *fixture = *state;
    the_log = (struct log){ 0 };
    (void)snprintf(the_log.standby, sizeof(the_log.standby), "%s/standby", fixture->dir);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_close(fixture);
    assert_int_equal(store_replica_found(fixture->dir, &fixture->err), 0);
    copy_store(fixture);
    assert_int_equal(lead(fixture), 0);
    return r;
}

static int teardown(void **state)
{
    for (size_t i = 0; i < the_log.count; i++)
        free((void *)(uintptr_t)the_log.entries[i].changes);
    return fixture_teardown(state);
}

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, setup, teardown)

static struct store_replica *follow(struct fixture *fixture)
{
    struct store_replica *replica = NULL;
    assert_int_equal(store_replica_open(the_log.standby, &replica, &fixture->err), 0);
    uint64_t applied = store_replica_position(replica).number - 1;
    for (size_t i = applied; i < the_log.count; i++)
        if (store_replica_apply(replica, &the_log.entries[i], &fixture->err) < 0)
            fail_msg("entry %zu: %s", i, fixture->err.message);
    return replica;
}

static char *dump(const char *dir)
{
    char command[300], *text = xcalloc(1, 8 << 20);
    (void)snprintf(command, sizeof(command),
        "python3 -c \"import sqlite3,sys;"
        "print(chr(10).join(l for l in sqlite3.connect('%s/mgpu.db').iterdump() if chr(39)+'mark' not in "
        "l))\"",
        dir);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    size_t n = fread(text, 1, (8 << 20) - 1, out);
    assert_int_equal(pclose(out), 0);
    assert_true(n > 1000);
    return text;
}

static void assert_equal_tables(struct fixture *fixture)
{
    fixture_close(fixture);
    _cleanup_free_ char *ours = dump(fixture->dir), *theirs = dump(the_log.standby);
    assert_string_equal(ours, theirs);
}

static void on_retired(void *arg, uint64_t jobs)
{
    *(bool *)arg = true;
}

CASE(a_standby_has_the_same_tables, fixture)
{
    bool is_retired = false;
    for (uint32_t i = 0; i < 300; i++)
        fixture_run_job(fixture, i % 8); // many batches become one transaction, with rows in any order
    fixture_commit_all(fixture);
    for (uint32_t i = 0; i < 50; i++) {
        fixture_run_job(fixture, i % 8);
        (void)fixture_commit(fixture);
    }
    store_retire(fixture->store, INT64_MAX, 20, NULL, on_retired, &is_retired);
    fixture_dispatch_until(fixture, &is_retired);
    store_replica_close(follow(fixture));
    assert_true(fixture_number(fixture, "SELECT count(*) FROM jobs") < 100);
    assert_equal_tables(fixture);
}

CASE(a_change_of_a_booked_gpu_reaches_the_standby, fixture)
{
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    fixture_allocate(fixture, job, 0, 0);
    fixture_commit_all(fixture);
    fixture_event(fixture, job, EVENT_RETURNED);
    fixture_allocate(fixture, job, 1, 0);
    fixture_commit_all(fixture);
    store_replica_close(follow(fixture));
    assert_equal_tables(fixture);
}

CASE(a_standby_continues_after_a_restart_of_it, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_replica_close(follow(fixture));
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_replica_close(follow(fixture));
    assert_equal_tables(fixture);
}

/* As after a power failure: commits do not wait for the disk, because the log is durable. */
CASE(a_standby_that_lost_its_latest_commits_applies_them_again, fixture)
{
    char command[400];
    for (uint32_t i = 0; i < 20; i++) {
        fixture_run_job(fixture, 0);
        fixture_commit_all(fixture);
    }
    struct store_replica *replica = follow(fixture);
    (void)snprintf(command, sizeof(command),
        "cd %s && mkdir -m 700 cut && cp -p mgpu.db cut/ && wal=$(stat -c %%s mgpu.db-wal) && "
        "head -c $((wal / 2)) mgpu.db-wal >cut/mgpu.db-wal && chmod 600 cut/*",
        the_log.standby);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): a fixed command
    store_replica_close(replica);
    (void)strcat(the_log.standby, "/cut");
    assert_int_equal(store_replica_open(the_log.standby, &replica, &fixture->err), 0);
    uint64_t number = store_replica_position(replica).number;
    assert_true(number > 1 && number < the_log.count);
    store_replica_close(replica);
    store_replica_close(follow(fixture));
    assert_equal_tables(fixture);
}

CASE(a_standby_that_leads_begins_a_higher_epoch, fixture)
{
    uint64_t epoch = fixture->summary.epoch, job = fixture->summary.last_job;
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_replica_close(follow(fixture));
    fixture_close(fixture);
    const struct store_observer observer = {
        .arg = fixture, .on_durable = on_durable, .on_failed = on_failed
    };
    assert_int_equal(store_open_leading(the_log.standby, &observer, &writer, &fixture->store,
                         &fixture->summary, &fixture->err),
        0);
    assert_true(fixture->summary.epoch > epoch);
    assert_int_equal(fixture->summary.last_job, job + 1);
    assert_false(fixture->summary.is_old_copy);
}

CASE(a_failed_append_ends_the_store_and_changes_nothing, fixture)
{
    the_log.failure = -ECANCELED;
    fixture_run_job(fixture, 0);
    uint64_t batch = fixture_commit(fixture);
    assert_false(fixture_wait(fixture, batch));
    assert_int_equal(fixture->failed_batch, batch);
    assert_int_equal(fixture->failure.code, -EIO);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM jobs"), 1);
    the_log.failure = 0;
    store_replica_close(follow(fixture));
    assert_int_equal(fixture_number(fixture, "SELECT number FROM replica"), 1 + the_log.count);
}

CASE(an_append_without_an_answer_is_applied_when_it_is_in_the_log, fixture)
{
    the_log.failure = -ECANCELED;
    the_log.is_late = true;
    fixture_run_job(fixture, 0);
    assert_false(fixture_wait(fixture, fixture_commit(fixture)));
    fixture_close(fixture);
    char dir[64];
    memcpy(dir, fixture->dir, sizeof(dir));
    struct store_replica *replica = NULL;
    assert_int_equal(store_replica_open(dir, &replica, &fixture->err), 0);
    assert_int_equal(store_replica_position(replica).number, the_log.count);
    assert_int_equal(store_replica_apply(replica, &the_log.entries[the_log.count - 1], &fixture->err), 0);
    store_replica_close(replica);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM jobs"), 2);
}

/* Callers take -ENOSPC for "refused, and nothing happened", and the store tries again without its reserve. */
CASE(no_failure_of_an_append_is_taken_for_a_refusal, fixture)
{
    size_t count = the_log.count;
    the_log.failure = -ENOSPC;
    the_log.is_late = true;
    fixture_run_job(fixture, 0);
    assert_false(fixture_wait(fixture, fixture_commit(fixture)));
    assert_int_equal(fixture->failure.code, -EIO);
    assert_int_equal(the_log.count, count + 1);
}

CASE(an_entry_is_applied_only_after_the_one_before_it, fixture)
{
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    struct store_replica *replica = NULL;
    assert_int_equal(store_replica_open(the_log.standby, &replica, &fixture->err), 0);
    assert_int_equal(store_replica_apply(replica, &the_log.entries[1], &fixture->err), -ESTALE);
    struct store_entry other = the_log.entries[0];
    other.before.id++; // the same number of another log
    assert_int_equal(store_replica_apply(replica, &other, &fixture->err), -ESTALE);
    assert_int_equal(store_replica_apply(replica, &the_log.entries[0], &fixture->err), 0);
    assert_int_equal(store_replica_apply(replica, &the_log.entries[0], &fixture->err), -ESTALE);
    store_replica_close(replica);
}

CASE(an_entry_that_does_not_fit_changes_nothing, fixture)
{
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    fixture_commit_all(fixture);
    fixture_allocate(fixture, job, 0, 0);
    fixture_commit_all(fixture);
    store_replica_close(follow(fixture));
    fixture_event(fixture, job, EVENT_STARTED);
    fixture_commit_all(fixture);
    char command[200];
    (void)snprintf(command, sizeof(command),
        "python3 -c \"import sqlite3;c=sqlite3.connect('%s/mgpu.db');c.execute('UPDATE jobs SET "
        "uid=uid+1');c.commit()\"",
        the_log.standby);
    assert_int_equal(system(command), 0);
    struct store_replica *replica = NULL;
    assert_int_equal(store_replica_open(the_log.standby, &replica, &fixture->err), 0);
    struct store_position before = store_replica_position(replica);
    struct store_entry removal = the_log.entries[the_log.count - 1];
    int r = store_replica_apply(replica, &removal, &fixture->err);
    /* Only the columns that an entry changes, and the key, are compared. */
    assert_int_equal(r, 0);
    assert_int_not_equal(store_replica_position(replica).number, before.number);
    store_replica_close(replica);
    (void)snprintf(command, sizeof(command),
        "python3 -c \"import sqlite3;c=sqlite3.connect('%s/mgpu.db');c.execute('DELETE FROM "
        "gpu_alloc');c.commit()\"",
        the_log.standby);
    assert_int_equal(system(command), 0);
    fixture_event(fixture, job, EVENT_ENDED);
    fixture_commit_all(fixture);
    assert_int_equal(store_replica_open(the_log.standby, &replica, &fixture->err), 0);
    before = store_replica_position(replica);
    assert_int_equal(
        store_replica_apply(replica, &the_log.entries[the_log.count - 1], &fixture->err), -EUCLEAN);
    assert_int_equal(store_replica_position(replica).number, before.number);
    store_replica_close(replica);
}

/* SQLite 3.40 itself does not end on the first. */
CASE(bytes_that_are_no_changes_are_refused, fixture)
{
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        { "Tark\1\0\0\0\0\0\0\0", 13 },
        { "T", 1 },
        { "T\377\377\377\377", 5 },
        { "T\2\1\0meta\0\22\0\3\377meta", 17 },
        { "T\2\1\0meta\0\22\0\6", 12 },
    };
    struct store_replica *replica = follow(fixture);
    struct store_position before = store_replica_position(replica);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct store_entry entry = { .before = before,
            .position = { before.number + 1, 77 },
            .schema = (uint32_t)store_schema_version(),
            .changes = cases[i].bytes,
            .length = cases[i].length };
        assert_int_equal(store_replica_apply(replica, &entry, &fixture->err), -EUCLEAN);
        assert_non_null(strstr(fixture->err.message, "damaged at byte"));
        assert_int_equal(store_replica_position(replica).number, before.number);
    }
    store_replica_close(replica);
}

CASE(a_store_of_a_cluster_is_not_opened_alone, fixture)
{
    fixture_close(fixture);
    assert_int_equal(fixture_try_open(fixture), -EXDEV);
    assert_int_equal(store_replica_leave(fixture->dir, &fixture->err), 0);
    assert_int_equal(fixture_try_open(fixture), 0);
}

CASE(a_store_of_no_cluster_is_not_opened_with_a_log, fixture)
{
    fixture_close(fixture);
    assert_int_equal(store_replica_leave(fixture->dir, &fixture->err), 0);
    assert_int_equal(lead(fixture), -ENXIO);
}

CASE(a_view_of_a_standbys_store_does_not_change_and_cannot_be_changed, fixture)
{
    const struct store_observer observer = {
        .arg = fixture, .on_durable = on_durable, .on_failed = on_failed
    };
    struct store_summary before = { 0 }, after = { 0 };
    struct store_position at = { 0 }, later = { 0 };
    struct store *view = NULL, *fresh = NULL;
    store_replica_close(follow(fixture));
    struct store_replica *replica = follow(fixture);
    assert_int_equal(store_open_reading(the_log.standby, &observer, &view, &before, &at, &fixture->err), 0);
    assert_int_equal(at.number, store_replica_position(replica).number);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    for (size_t i = at.number - 1; i < the_log.count; i++)
        assert_int_equal(store_replica_apply(replica, &the_log.entries[i], &fixture->err), 0);
    int64_t jobs = 0;
    assert_int_equal(store_sql_number(view->db, "SELECT count(*) FROM jobs", &jobs, &fixture->err), 0);
    assert_int_equal((uint64_t)jobs, before.jobs);
    assert_int_equal(store_sql_run(view->db, "DELETE FROM jobs", &fixture->err), -EROFS);
    store_close(view);
    assert_int_equal(
        store_open_reading(the_log.standby, &observer, &fresh, &after, &later, &fixture->err), 0);
    assert_int_equal(after.jobs, before.jobs + 1);
    assert_int_equal(later.number, the_log.count + 1);
    store_close(fresh);
    store_replica_close(replica);
}
