/* SPDX-License-Identifier: MIT */
/*
 * The same short life of a store, over and over: at the Nth change of a file something goes wrong, until a
 * life passes without. After each the store is opened again as a restarted daemon would. N grows by STEP,
 * from another first number for each fault: of the many small pages of a commit, one in seven is enough for
 * each commit of the sources. `make soak` takes them all: it sets MGPU_SOAK_STEP to 1.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "fault_vfs.h"
#include "store_fixture.h"
#include "unit_test.h"

#define BATCHES        6
#define CHANCES        2    // power cuts at the same place, each with other losses
#define LIVES_TOGETHER 16   // in one directory, one after the other
#define CHANGES_MAX    2000 // a life has fewer
#define STEP           7

static unsigned step = STEP;

struct life {
    uint64_t acknowledged; // highest event seq reported durable
    uint64_t sent;         // highest event seq handed over
    bool has_failed;
    char failure[512];
};

/* Batches of different shapes, with mixed kinds of events, and a snapshot in between. */
static void add_batch(struct fixture *fixture, struct job **jobs, unsigned i)
{
    if (i % 3 == 0) {
        jobs[0] = fixture_submit(fixture, NULL);
        jobs[1] = fixture_submit(fixture, NULL);
        fixture_allocate(fixture, jobs[0], 0, 0);
    } else if (i % 3 == 1) {
        fixture_event(fixture, jobs[0], EVENT_STARTED);
        fixture_allocate(fixture, jobs[1], 1, 1);
        fixture_event(fixture, jobs[1], EVENT_RETURNED);
    } else {
        fixture_event(fixture, jobs[0], EVENT_ENDED);
        fixture_event(fixture, jobs[1], EVENT_STOP);
        job_free(take_ptr(jobs[0]));
        job_free(take_ptr(jobs[1]));
    }
}

static void live(struct fixture *fixture, struct life *life)
{
    struct job *jobs[2] = { NULL, NULL };
    *life = (struct life){ 0 };
    if (fixture_try_open(fixture) < 0) {
        life->has_failed = true;
        (void)snprintf(life->failure, sizeof(life->failure), "%s", fixture->err.message);
        return;
    }
    life->acknowledged = life->sent = fixture->summary.last_event;
    fixture->durable = fixture->next_batch;
    for (unsigned i = 0; i < BATCHES && !fixture->has_failed; i++) {
        add_batch(fixture, jobs, i);
        life->sent = fixture->next_seq - 1;
        if (i == BATCHES / 2)
            store_snapshot(fixture->store);
        if (fixture_wait(fixture, fixture_commit(fixture)))
            life->acknowledged = life->sent;
    }
    life->has_failed = fixture->has_failed;
    (void)snprintf(life->failure, sizeof(life->failure), "%s", fixture->failure.message);
    job_free(jobs[0]);
    job_free(jobs[1]);
    fixture_close(fixture);
}

/* What must be so when the next daemon starts. Its own life brings the numbers on. */
static void check(struct fixture *fixture, const struct life *life, unsigned n)
{
    if (fixture_try_open(fixture) < 0)
        fail_msg("after change %u went wrong: %s", n, fixture->err.message);
    if (fixture->summary.last_event < life->acknowledged)
        fail_msg("change %u: event %lu was reported durable, the store has %lu", n,
            (unsigned long)life->acknowledged, (unsigned long)fixture->summary.last_event);
    if (life->sent > 0 && fixture->summary.last_event > life->sent)
        fail_msg("change %u: events that nobody sent", n);
    if (fixture_number(fixture, "SELECT count(*) FROM events") != (int64_t)fixture->summary.last_event)
        fail_msg("change %u: events are missing in between", n);
    if (fixture_fsck(fixture) != 0)
        fail_msg("change %u: %s", n, fixture->finding);
    assert_false(fixture->is_out_of_order);
    fixture_close(fixture);
}

/* The store's first life includes its creation. */
static void begin_life(struct fixture *fixture, bool is_first)
{
    fixture_close(fixture);
    if (!is_first)
        return;
    assert_int_equal(unlink(fixture_path(fixture, "mgpu.db")), 0);
}

static void renew(void **state)
{
    if (*state != NULL)
        (void)fixture_teardown(state);
    *state = NULL;
    assert_int_equal(fixture_setup(state), 0);
}

/* Returns how many lives ended in a failure. Unless `word` is NULL each must have said it; then none finds
 * the jobs of another. */
static unsigned fail_at_each_change(
    void **state, enum fault fault, unsigned chances, bool is_first, const char *word)
{
    unsigned failures = 0, lives = 0;
    for (unsigned n = 1 + (unsigned)fault % step; n < CHANGES_MAX; n += step) {
        bool has_fired = false;
        for (unsigned chance = 0; chance < chances; chance++, lives++) {
            struct life life;
            if (is_first || word != NULL || lives % LIVES_TOGETHER == 0)
                renew(state);
            struct fixture *fixture = *state;
            begin_life(fixture, is_first);
            fault_vfs_arm(fault, n, n * 7919 + chance);
            live(fixture, &life);
            has_fired = fault_vfs_disarm();
            failures += life.has_failed;
            if (word != NULL && life.has_failed && strstr(life.failure, word) == NULL)
                fail_msg("change %u: '%s' does not say '%s'", n, life.failure, word);
            check(fixture, &life, n);
        }
        if (!has_fired)
            break;
        assert_true(n + step < CHANGES_MAX);
    }
    (void)fixture_teardown(state);
    *state = NULL;
    return failures;
}

TEST(an_io_error_at_any_change_loses_nothing_acknowledged)
{
    assert_true(fail_at_each_change(state, FAULT_EIO, 1, false, strerror(EIO)) * step > BATCHES);
}

TEST(a_disk_that_is_full_once_fails_no_commit)
{
    assert_int_equal(fail_at_each_change(state, FAULT_FULL, 1, false, NULL), 0);
}

TEST(a_disk_that_stays_full_loses_nothing_acknowledged)
{
    assert_true(fail_at_each_change(state, FAULT_FULL_ALWAYS, 1, false, NULL) * step > BATCHES);
}

TEST(a_file_system_that_turns_read_only_says_so_and_loses_nothing_acknowledged)
{
    assert_true(fail_at_each_change(state, FAULT_READ_ONLY, 1, false, strerror(EROFS)) * step > BATCHES);
}

/* Nobody is told to move the store away, whose file may be whole. */
TEST(a_disk_that_cannot_be_read_at_a_start_is_no_damage)
{
    unsigned failures = 0;
    bool has_fired = true;
    for (unsigned n = 1; has_fired; n += step) {
        renew(state);
        struct fixture *fixture = *state;
        struct life life;
        begin_life(fixture, false);
        live(fixture, &life);
        fault_vfs_arm(FAULT_UNREADABLE, n, 0);
        int r = fixture_try_open(fixture);
        has_fired = fault_vfs_disarm();
        if (r < 0 && (r != -EIO || strstr(fixture->err.message, strerror(EIO)) == NULL ||
                         strstr(fixture->err.message, "damaged") != NULL ||
                         strstr(fixture->err.hint, "move it away") != NULL))
            fail_msg("read %u: %d, %s (%s)", n, r, fixture->err.message, fixture->err.hint);
        failures += r < 0;
        fixture_close(fixture);
        check(fixture, &life, n);
    }
    assert_true(failures > 5);
    (void)fixture_teardown(state);
    *state = NULL;
}

TEST(death_at_any_change_loses_nothing_acknowledged)
{
    assert_true(fail_at_each_change(state, FAULT_DIE, 1, false, NULL) * step > BATCHES);
}

TEST(a_torn_write_at_any_change_loses_nothing_acknowledged)
{
    assert_true(fail_at_each_change(state, FAULT_TORN, 1, false, NULL) * step > BATCHES);
}

TEST(a_power_cut_at_any_change_loses_nothing_acknowledged)
{
    assert_true(fail_at_each_change(state, FAULT_POWER_CUT, CHANCES, false, NULL) * step > BATCHES);
}

TEST(a_creation_that_goes_wrong_leaves_a_store_or_none)
{
    (void)fail_at_each_change(state, FAULT_EIO, 1, true, NULL);
    (void)fail_at_each_change(state, FAULT_FULL_ALWAYS, 1, true, NULL);
    (void)fail_at_each_change(state, FAULT_POWER_CUT, 1, true, NULL);
}

/* The faults are made here, so memory serves as the disk; then a run takes seconds. */
int main(void)
{
    if (access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 0);
    if (getenv("MGPU_SOAK_STEP") != NULL)
        step = (unsigned)strtoul(getenv("MGPU_SOAK_STEP"), NULL, 10);
    if (step == 0)
        return 1;
    fault_vfs_install();
    return unit_tests_run(NULL, NULL);
}
