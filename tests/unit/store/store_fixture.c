/* SPDX-License-Identifier: MIT */
/* Waiting is on the store's eventfd with a deadline. */
#include "store_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "store/store_sqlite.h"
#include "unit_test.h"

#define DEADLINE_MS 20000

static void on_durable(void *arg, uint64_t batch)
{
    struct fixture *fixture = arg;
    if (batch != fixture->durable + 1 || fixture->has_failed)
        fixture->is_out_of_order = true;
    fixture->durable = batch;
}

static void on_failed(void *arg, uint64_t batch, const struct error *err)
{
    struct fixture *fixture = arg;
    fixture->has_failed = true;
    fixture->failed_batch = batch;
    fixture->failure = *err;
}

static void on_warning(void *arg, const struct error *err)
{
    struct fixture *fixture = arg;
    fixture->warnings++;
    fixture->warning = *err;
}

static void on_verified(void *arg, const struct store_verification *verification)
{
    struct fixture *fixture = arg;
    fixture->is_verified = true;
    fixture->verification = *verification;
}

static void on_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
    struct fixture *fixture = arg;
    assert_true(total == 0 || done <= total);
    if (what == NULL)
        fixture->ends++;
    else
        fixture->reports++;
}

int fixture_try_open(struct fixture *fixture)
{
    const struct store_observer observer = { .arg = fixture,
        .on_durable = on_durable,
        .on_failed = on_failed,
        .on_warning = on_warning,
        .on_verified = on_verified,
        .progress = { on_progress, fixture } };
    memset(&fixture->err, 0, sizeof(fixture->err));
    int r = store_open(fixture->dir, &observer, &fixture->store, &fixture->summary, &fixture->err);
    if (r < 0)
        return r;
    fixture->next_seq = fixture->summary.last_event + 1;
    fixture->next_job = fixture->summary.last_job + 1;
    fixture->has_failed = false;
    return 0;
}

void fixture_open(struct fixture *fixture)
{
    int r = fixture_try_open(fixture);
    if (r < 0)
        fail_msg("store_open: %s (%s)", fixture->err.message, fixture->err.hint);
}

void fixture_close(struct fixture *fixture)
{
    store_batch_free(take_ptr(fixture->batch));
    store_close(take_ptr(fixture->store));
}

int fixture_setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    const char *base = getenv("TMPDIR");
    (void)snprintf(
        fixture->dir, sizeof(fixture->dir), "%.40s/mgpu-store-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(fixture->dir) == NULL)
        return -1;
    fixture_open(fixture);
    *state = fixture;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    (void)unit_test_remove(fixture->dir);
    free(fixture);
    return 0;
}

static void add(struct fixture *fixture, const struct job_event *event, const struct job *job,
    const struct job_spec *spec)
{
    if (fixture->batch == NULL)
        fixture->batch = store_batch_new(++fixture->next_batch);
    _cleanup_(spec_bytes_dropp) struct spec_bytes *bytes = spec != NULL ? spec_bytes_new(spec) : NULL;
    store_batch_add(fixture->batch, event, job, bytes);
}

void fixture_apply(struct fixture *fixture, struct job *job, struct job_event *event)
{
    event->seq = fixture->next_seq++;
    event->job = job != NULL ? job->id : 0;
    event->wall_ms = clock_wall_ms();
    if (job != NULL && job_apply(job, event, &fixture->err) < 0)
        fail_msg("%s", fixture->err.message);
    add(fixture, event, job, NULL);
}

struct job *fixture_submit(struct fixture *fixture, const struct job_spec *spec)
{
    _cleanup_(job_spec_clear) struct job_spec plain;
    job_spec_init(&plain);
    strings_add(&plain.command, "true");
    strings_add(&plain.env, "PATH=/usr/bin:/bin");
    plain.cwd = xstrdup("/tmp");
    const struct job_spec *used = spec != NULL ? spec : &plain;
    struct job *job = job_new(fixture->next_job++, used);
    const struct job_event event = { .seq = fixture->next_seq++,
        .job = job->id,
        .type = EVENT_SUBMITTED,
        .wall_ms = clock_wall_ms(),
        .uid = 1000,
        .gid = 100 };
    assert_int_equal(job_apply(job, &event, &fixture->err), 0);
    add(fixture, &event, job, used);
    return job;
}

void fixture_allocate(struct fixture *fixture, struct job *job, uint32_t gpu, uint32_t slot)
{
    char uuid[32];
    (void)snprintf(uuid, sizeof(uuid), "GPU-%u", gpu);
    _cleanup_(job_event_clear) struct job_event event = { .seq = fixture->next_seq++,
        .job = job->id,
        .attempt = job->attempt + 1,
        .type = EVENT_ALLOCATED,
        .wall_ms = clock_wall_ms(),
        .token = 0xfedcba9876543210ULL + job->id };
    event.node = xstrdup("node1");
    event.boot_id = xstrdup("b00t");
    gpu_grants_add(&event.gpus, gpu, uuid, slot, slot > 0 ? 1ULL << 30 : 0);
    assert_int_equal(job_apply(job, &event, &fixture->err), 0);
    add(fixture, &event, job, NULL);
}

void fixture_event(struct fixture *fixture, struct job *job, enum job_event_type type)
{
    _cleanup_(job_event_clear) struct job_event event = { .seq = fixture->next_seq++,
        .job = job->id,
        .attempt = type == EVENT_STOP ? 0 : job->attempt,
        .type = type,
        .wall_ms = clock_wall_ms(),
        .uid = type == EVENT_STOP ? 1000 : 0 };
    if (type == EVENT_ENDED) {
        event.end = END_EXIT;
        event.exit_code = 3;
        event.run_ms = 12;
        event.text = xstrdup("it is \"over\"; ü");
    }
    if (type == EVENT_STARTED)
        event.log_path = xstrdup("/tmp/job.log");
    assert_int_equal(job_apply(job, &event, &fixture->err), 0);
    add(fixture, &event, job, NULL);
}

uint64_t fixture_commit(struct fixture *fixture)
{
    assert_non_null(fixture->batch);
    store_commit(fixture->store, take_ptr(fixture->batch));
    return fixture->next_batch;
}

static void dispatch_once(struct fixture *fixture, int64_t deadline_ms)
{
    struct pollfd ready = { .fd = store_fd(fixture->store), .events = POLLIN };
    int64_t left_ms = deadline_ms - clock_boot_ms();
    if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) < 0)
        fail_msg("the store did not answer in time");
    store_dispatch(fixture->store);
}

void fixture_dispatch_once(struct fixture *fixture)
{
    dispatch_once(fixture, clock_boot_ms() + DEADLINE_MS);
}

bool fixture_wait(struct fixture *fixture, uint64_t batch)
{
    int64_t deadline_ms = clock_boot_ms() + DEADLINE_MS;
    while (fixture->durable < batch && !fixture->has_failed)
        dispatch_once(fixture, deadline_ms);
    return fixture->durable >= batch;
}

void fixture_commit_all(struct fixture *fixture)
{
    if (!fixture_wait(fixture, fixture_commit(fixture)))
        fail_msg("the store failed: %s", fixture->failure.message);
}

void fixture_snapshot(struct fixture *fixture)
{
    unsigned before = fixture->warnings;
    int64_t deadline_ms = clock_boot_ms() + DEADLINE_MS;
    fixture->is_verified = false;
    store_snapshot(fixture->store);
    while (!fixture->is_verified && fixture->warnings == before)
        dispatch_once(fixture, deadline_ms);
}

void fixture_dispatch_until(struct fixture *fixture, const bool *flag)
{
    int64_t deadline_ms = clock_boot_ms() + DEADLINE_MS;
    while (!*flag)
        dispatch_once(fixture, deadline_ms);
}

static void keep_finding(void *arg, const char *sentence)
{
    struct fixture *fixture = arg;
    (void)snprintf(fixture->finding, sizeof(fixture->finding), "%s", sentence);
}

int fixture_fsck(struct fixture *fixture)
{
    fixture->finding[0] = '\0';
    int r = store_fsck(fixture->dir, keep_finding, fixture, NULL, &fixture->err);
    if (r < 0)
        fail_msg("fsck: %s", fixture->err.message);
    return r;
}

void fixture_run_job(struct fixture *fixture, uint32_t gpu)
{
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    fixture_allocate(fixture, job, gpu, 0);
    fixture_event(fixture, job, EVENT_STARTED);
    fixture_event(fixture, job, EVENT_ENDED);
}

int fixture_sql(struct fixture *fixture, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(fixture_path(fixture, STORE_DATABASE), &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    (void)sqlite3_close(db);
    return rc;
}

int64_t fixture_number(struct fixture *fixture, const char *sql)
{
    sqlite3 *db = NULL;
    int64_t number = -1;
    assert_int_equal(sqlite3_open(fixture_path(fixture, STORE_DATABASE), &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    assert_int_equal(store_sql_number(db, sql, &number, &fixture->err), 0);
    (void)sqlite3_close(db);
    return number;
}

const char *fixture_path(struct fixture *fixture, const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", fixture->dir, name);
    return path;
}

void fixture_keep(struct fixture *fixture, const char *name, struct buffer *ret)
{
    _cleanup_close_ int dirfd = open(fixture->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_read(dirfd, name, 1 << 24, ret), 0);
}

void fixture_put(struct fixture *fixture, const char *name, const void *bytes, size_t length)
{
    _cleanup_close_ int fd =
        open(fixture_path(fixture, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, bytes, length), 0);
}

void fixture_crash(struct fixture *fixture)
{
    static const char *const names[] = { "mgpu.db", "mgpu.db-wal", "mgpu.db-shm" };
    struct buffer copies[3] = { { 0 }, { 0 }, { 0 } };
    for (size_t i = 0; i < 3; i++)
        fixture_keep(fixture, names[i], &copies[i]);
    fixture_close(fixture);
    for (size_t i = 0; i < 3; i++) {
        fixture_put(fixture, names[i], copies[i].bytes, copies[i].length);
        buffer_clear(&copies[i]);
    }
}
