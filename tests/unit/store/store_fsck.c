/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "store_fixture.h"
#include "unit_test.h"

/* A running job with one GPU, a job that ended, and a queued one. */
static void fill(struct fixture *fixture)
{
    fixture_run_job(fixture, 0);
    _cleanup_(job_freep) struct job *running = fixture_submit(fixture, NULL);
    fixture_allocate(fixture, running, 1, 0);
    fixture_event(fixture, running, EVENT_STARTED);
    job_free(fixture_submit(fixture, NULL));
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
}

/* Each row damages the tables without the store; the word is in the output of fsck. */
static const struct {
    const char *sql, *word;
} damages[] = {
    { "UPDATE jobs SET exit_code = 7 WHERE id = 1", "exit_code" },
    { "UPDATE jobs SET hold = 1 WHERE id = 3", "hold" },
    { "UPDATE jobs SET ask = x'00' WHERE id = 3", "'ask'" },
    { "UPDATE jobs SET stop_reason = 3 WHERE id = 3", "stop_reason" },
    { "UPDATE jobs SET array_job = 1 WHERE id = 3", "an array that does not exist" },
    { "UPDATE jobs SET array_left = '', array_open = 2 WHERE id = 3", "wrong count of open elements" },
    { "DROP TRIGGER gpu_alloc_no_change; UPDATE gpu_alloc SET share = 7", "other GPUs" },
    { "DROP TRIGGER gpu_alloc_shares; DROP TRIGGER gpu_alloc_exclusive;"
      " INSERT INTO gpu_alloc VALUES ('n', 'G', 1, 3, 1, 7, 0, 0, 600), ('n', 'G', 2, 3, 1, 7, 0, 0, 600)",
        "shares above" },
    { "INSERT INTO events VALUES (900, 0, 0, 13, 1, x'00')", "event 900" },
    { "UPDATE jobs SET state = 1 WHERE id = 2", "state" },
    { "UPDATE jobs SET text = 'other' WHERE id = 1", "text" },
    { "UPDATE jobs SET grants = NULL WHERE id = 2", "grants" },
    { "DELETE FROM gpu_alloc", "has 0 GPUs allocated" },
    { "INSERT INTO gpu_alloc VALUES ('node1', 'GPU-7', 0, 3, 1, 7, 0, 1, 0)", "job 3" },
    { "DROP TRIGGER gpu_alloc_no_change; UPDATE gpu_alloc SET uuid = 'GPU-9'", "other GPUs" },
    { "UPDATE attempts SET token = 0 WHERE job = 2", "attempt 1 of job 2" },
    { "DELETE FROM attempts WHERE job = 1", "0 attempts" },
    { "PRAGMA foreign_keys = OFF; DELETE FROM specs WHERE job = 3", "no specification" },
    { "PRAGMA foreign_keys = OFF; DROP TRIGGER jobs_no_removal; DELETE FROM jobs WHERE id = 3", "no row" },
    { "UPDATE ended SET held_ms = 900000 WHERE job = 1", "differ from the jobs" },
    { "DELETE FROM ended WHERE job = 1", "have no row in ended" },
    { "INSERT INTO kept_days VALUES (1, 1, 1, '', 1, 5, 6, 0)", "impossible totals" },
    { "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'jobs'", "highest" },
    { "DROP TRIGGER events_no_removal; DELETE FROM events WHERE job = 3", "no events" },
    { "DROP TRIGGER events_no_removal; DELETE FROM events WHERE seq = 2", "is impossible" },
    { "DROP TRIGGER events_no_change; UPDATE events SET wall_ms = 1 WHERE seq = 2", "columns" },
    { "DROP TRIGGER events_no_change; UPDATE events SET event = x'00' WHERE seq = 2", "event 2" },
};

struct search {
    const char *word;
    bool was_said;
};

static void listen(void *arg, const char *sentence)
{
    struct search *said = arg;
    said->was_said = said->was_said || strstr(sentence, said->word) != NULL;
}

TEST(every_kind_of_damage_is_found)
{
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        assert_int_equal(fixture_setup(state), 0);
        struct fixture *fixture = *state;
        struct search said = { .word = damages[i].word };
        fill(fixture);
        assert_int_equal(fixture_sql(fixture, damages[i].sql), SQLITE_OK);
        assert_true(store_fsck(fixture->dir, listen, &said, NULL, &fixture->err) > 0);
        if (!said.was_said)
            fail_msg("%s: nothing was said of '%s'", damages[i].sql, damages[i].word);
        (void)fixture_teardown(state);
    }
}

TEST(it_runs_beside_a_store_that_is_at_work)
{
    assert_int_equal(fixture_setup(state), 0);
    struct fixture *fixture = *state;
    uint64_t last = 0;
    for (uint32_t i = 0; i < 300; i++) {
        fixture_run_job(fixture, i % 8);
        last = fixture_commit(fixture);
        if (i % 60 == 0)
            assert_int_equal(fixture_fsck(fixture), 0);
    }
    assert_true(fixture_wait(fixture, last));
    assert_int_equal(fixture_fsck(fixture), 0);
    (void)fixture_teardown(state);
}

TEST(it_checks_a_store_that_is_closed_and_changes_nothing)
{
    assert_int_equal(fixture_setup(state), 0);
    struct fixture *fixture = *state;
    fill(fixture);
    uint64_t epoch = fixture->summary.epoch;
    fixture_close(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.epoch, epoch + 1);
    (void)fixture_teardown(state);
}
