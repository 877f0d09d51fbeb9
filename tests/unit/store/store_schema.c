/* SPDX-License-Identifier: MIT */
/* What step 2 adds, and that a store made by step 1 becomes one of step 2 with everything in it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/cluster_change.h"
#include "job/idle.h"
#include "store/store_schema.h"
#include "store/store_sqlite.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define TEXT(text) ((char *)(uintptr_t)(text))

/* --- a store of step 1 --- */

static void put_hex(struct buffer *sql, const struct record_type *type, const void *object)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, object, &bytes);
    buffer_append_text(sql, "x'");
    for (size_t i = 0; i < bytes.length; i++)
        buffer_printf(sql, "%02x", bytes.bytes[i]);
    buffer_append_text(sql, "'");
}

static void put_event(struct buffer *sql, const struct job_event *event)
{
    buffer_printf(sql, "INSERT INTO events VALUES (%d, %d, %u, %u, %d, ", (int)event->seq, (int)event->job,
        event->attempt, event->type, (int)event->wall_ms);
    put_hex(sql, &job_event_record, event);
    buffer_append_text(sql, ");");
}

/* Job 1 was cancelled while it ran, job 2 runs on half of a GPU's memory, job 3 waits for GPUs 3 and 1. */
static void put_old_rows(struct buffer *sql)
{
    struct job_spec specs[] = { { .ask = { .gpus = 0 } }, { .ask = { .gpus = 1, .gpu_mem = 5 } },
        { .ask = { .gpus = 2, .gpu_ids = TEXT("3,1"), .priority = -7 } } };
    struct gpu_grant grant = { .uuid = TEXT("G"), .slot = 1, .memory = 5 };
    const struct job_event events[] = {
        { .seq = 1, .job = 1, .type = EVENT_SUBMITTED, .wall_ms = 10 },
        { .seq = 2,
            .job = 1,
            .attempt = 1,
            .type = EVENT_ALLOCATED,
            .wall_ms = 11,
            .token = 5,
            .node = TEXT("n") },
        { .seq = 3, .job = 1, .attempt = 1, .type = EVENT_STOP, .wall_ms = 12 },
        { .seq = 4, .job = 1, .attempt = 1, .type = EVENT_ENDED, .wall_ms = 13, .end = END_CANCELLED },
        { .seq = 5, .job = 2, .type = EVENT_SUBMITTED, .wall_ms = 14 },
        { .seq = 6,
            .job = 2,
            .attempt = 1,
            .type = EVENT_ALLOCATED,
            .wall_ms = 15,
            .token = 6,
            .node = TEXT("n"),
            .gpus = { .items = &grant, .count = 1 } },
        { .seq = 7, .job = 3, .type = EVENT_SUBMITTED, .wall_ms = 16 },
    };
    static const char jobs[] =
        "INSERT INTO jobs VALUES (1, 0, 0, 0, 0, 0, NULL, 'true', 'true', 10, 5, 1, 0, 13, 5, 'n', NULL,"
        " NULL, NULL, 3, 0, 0, 0, 0, 0, 0, 0, NULL);"
        "INSERT INTO jobs VALUES (2, 0, 0, 0, 1, 5, NULL, 'true', 'true', 14, 2, 1, 0, 0, 6, 'n', NULL,"
        " NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL);"
        "INSERT INTO jobs VALUES (3, 0, 0, -7, 2, 0, '3,1', 'true', 'true', 16, 1, 0, 0, 0, 0, NULL, NULL,"
        " NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, NULL);"
        "INSERT INTO attempts VALUES (1, 1, 'n', NULL, 5, 11, 0, 13, 5), (2, 1, 'n', NULL, 6, 15, 0, 0, 1);"
        "INSERT INTO gpu_alloc VALUES ('n', 'G', 1, 2, 1, 0, 5, 0);"
        "INSERT INTO meta VALUES ('instance', '0123456789abcdef0123456789abcdef'), ('created_ms', 1),"
        " ('epoch', 4), ('mark', 0), ('event_floor', 0);";
    buffer_append_text(sql, jobs);
    for (size_t i = 0; i < 3; i++) {
        strings_add(&specs[i].command, "true");
        buffer_printf(sql, "INSERT INTO specs VALUES (%zu, ", i + 1);
        put_hex(sql, &job_spec_record, &specs[i]);
        buffer_append_text(sql, ");");
        strings_clear(&specs[i].command);
    }
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        put_event(sql, &events[i]);
}

struct grants {
    struct record_list grants;
};

/* Those of job 2 are what its event says. */
static void put_old_grants(struct buffer *sql)
{
    static const struct record_field fields[] = {
        RECORD_SUBLIST(1, struct grants, grants, EVENT_GPUS_MAX, &gpu_grant_record),
    };
    static const struct record_type type = RECORD_TYPE(60, "grants", struct grants, fields);
    struct gpu_grant grant = { .uuid = TEXT("G"), .slot = 1, .memory = 5 };
    const struct grants grants = { .grants = { .items = &grant, .count = 1 } };
    buffer_append_text(sql, "UPDATE jobs SET grants = ");
    put_hex(sql, &type, &grants);
    buffer_append_text(sql, " WHERE id = 2;");
}

static void make_old_store(struct fixture *fixture)
{
    _cleanup_buffer_ struct buffer sql = { 0 };
    sqlite3 *db = NULL;
    fixture_close(fixture);
    assert_int_equal(unlink(fixture_path(fixture, STORE_DATABASE)), 0);
    (void)unlink(fixture_path(fixture, STORE_DATABASE "-wal"));
    (void)unlink(fixture_path(fixture, STORE_DATABASE "-shm"));
    assert_int_equal(sqlite3_open(fixture_path(fixture, STORE_DATABASE), &db), SQLITE_OK);
    assert_int_equal(store_schema_upgrade(db, store_schema_steps, 1, &fixture->err), 0);
    buffer_printf(
        &sql, "PRAGMA application_id = %d; PRAGMA journal_mode = WAL; BEGIN;", STORE_APPLICATION_ID);
    put_old_rows(&sql);
    put_old_grants(&sql);
    buffer_append_text(&sql, "COMMIT;");
    char *message = NULL;
    if (sqlite3_exec(db, buffer_text(&sql), NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void keep_job(void *arg, struct job *job)
{
    struct job **jobs = arg;
    job_free(jobs[job->id]);
    jobs[job->id] = job;
}

CASE(an_older_store_is_brought_up_to_date_with_all_that_is_in_it, fixture)
{
    struct job *jobs[4] = { 0 };
    make_old_store(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.jobs, 3);
    assert_int_equal(fixture->summary.last_event, 7);
    assert_int_equal(fixture->summary.epoch, 5);
    assert_int_equal(store_load_jobs(fixture->store, 9, keep_job, jobs, &fixture->err), 0);
    assert_int_equal(jobs[1]->stop_reason, END_CANCELLED);
    assert_int_equal(job_group(jobs[1]), jobs[1]->gid);
    assert_int_equal(jobs[2]->ask->gpu_mem, 5);
    assert_int_equal(jobs[2]->stop_reason, END_NONE);
    assert_int_equal(jobs[3]->ask->gpus, 2);
    assert_int_equal(jobs[3]->ask->priority, -7);
    assert_string_equal(jobs[3]->ask->gpu_ids, "3,1");
    assert_int_equal(fixture_number(fixture, "PRAGMA user_version"), store_schema_version());
    assert_int_equal(fixture_fsck(fixture), 0);
    for (int i = 0; i < 4; i++)
        job_free(jobs[i]);
}

CASE(a_store_that_was_brought_up_to_date_goes_on, fixture)
{
    make_old_store(fixture);
    fixture_open(fixture);
    fixture_run_job(fixture, 5);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_number(fixture, "SELECT max(id) FROM jobs"), 4);
    assert_true(fixture_sql(fixture, "DELETE FROM events WHERE seq = 1") != SQLITE_OK);
    assert_true(fixture_sql(fixture, "UPDATE events SET wall_ms = 0") != SQLITE_OK);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(fixture->summary.last_job, 4);
}

static void requeue(struct fixture *fixture, struct job *job, enum requeue_cause cause)
{
    struct job_event event = {
        .type = EVENT_ALLOCATED, .attempt = job->attempt + 1, .token = 1, .node = TEXT("n")
    };
    gpu_grants_add(&event.gpus, 0, "GPU-0", 0, 0);
    fixture_apply(fixture, job, &event);
    gpu_grants_clear(&event.gpus);
    fixture_event(fixture, job, EVENT_STARTED);
    fixture_apply(fixture, job,
        &(struct job_event){ .type = EVENT_REQUEUED, .attempt = job->attempt, .cause = cause, .wall_ms = 9 });
    fixture_commit_all(fixture);
}

#define WITHOUT_NEWER                                                                                        \
    "ALTER TABLE jobs DROP COLUMN array_cancelled; ALTER TABLE jobs DROP COLUMN array_done;"                 \
    "ALTER TABLE jobs DROP COLUMN array_exit_max; ALTER TABLE jobs DROP COLUMN account;"                     \
    "ALTER TABLE attempts ADD COLUMN boot_id TEXT; ALTER TABLE jobs DROP COLUMN earlier;"

CASE(requeues_of_an_older_store_are_counted_from_its_events, fixture)
{
    static const enum requeue_cause causes[] = { REQUEUE_TIME_LIMIT, REQUEUE_NODE_LOST, REQUEUE_TIME_LIMIT,
        REQUEUE_ASKED, REQUEUE_FAILED, REQUEUE_PREEMPTED };
    struct job *jobs[2] = { 0 };
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
        requeue(fixture, job, causes[i]);
    fixture_close(fixture);
    assert_int_equal(
        fixture_sql(fixture,
            "ALTER TABLE jobs DROP COLUMN limit_requeues;"
            "ALTER TABLE jobs DROP COLUMN loss_requeues;"
            "ALTER TABLE jobs DROP COLUMN park;"
            "ALTER TABLE jobs DROP COLUMN api_token;" WITHOUT_NEWER "ALTER TABLE tokens DROP COLUMN scopes;"
            "ALTER TABLE tokens DROP COLUMN max_gpu_ms; PRAGMA user_version = 4"),
        SQLITE_OK);
    fixture_open(fixture);
    assert_int_equal(store_load_jobs(fixture->store, 0, keep_job, jobs, &fixture->err), 0);
    assert_int_equal(job_run(jobs[1])->limit_requeues, 2);
    assert_int_equal(job_run(jobs[1])->loss_requeues, 1);
    assert_int_equal(fixture_fsck(fixture), 0);
    job_free(jobs[1]);
}

/* The second attempt was on a lost node, which reports no end and so no log; the third never started. */
CASE(the_output_of_a_requeued_attempt_of_an_older_store_is_found_in_its_events, fixture)
{
    struct job *jobs[3] = { 0 };
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    _cleanup_(job_freep) struct job *other = fixture_submit(fixture, NULL);
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        fixture_allocate(fixture, job, 0, 0);
        _cleanup_free_ char *log_path = xasprintf("/log.%u", attempt);
        if (attempt < 3)
            fixture_apply(fixture, job,
                &(struct job_event){ .type = EVENT_STARTED, .attempt = attempt, .log_path = log_path });
        fixture_apply(fixture, job,
            &(struct job_event){
                .type = EVENT_REQUEUED, .attempt = attempt, .log_path = attempt == 1 ? log_path : NULL });
    }
    fixture_commit_all(fixture);
    fixture_close(fixture);
    assert_int_equal(
        fixture_sql(fixture, "ALTER TABLE jobs DROP COLUMN earlier; PRAGMA user_version = 10"), SQLITE_OK);
    fixture_open(fixture);
    assert_int_equal(store_load_jobs(fixture->store, 0, keep_job, jobs, &fixture->err), 0);
    assert_int_equal(job_run(jobs[1])->earlier->attempt, 2);
    assert_string_equal(job_earlier_rank(jobs[1], 0)->log_path, "/log.2");
    assert_string_equal(job_earlier_rank(jobs[1], 0)->name, "node1");
    assert_int_equal(jobs[2]->id, other->id);
    assert_null(job_run(jobs[2])->earlier);
    assert_int_equal(fixture_fsck(fixture), 0);
    job_free(jobs[1]);
    job_free(jobs[2]);
}

CASE(elements_of_an_older_store_are_counted_from_the_events_of_their_array, fixture)
{
    static const struct {
        enum job_end end;
        int32_t exit_code;
    } ends[] = { { END_EXIT, 0 }, { END_EXIT, 3 }, { END_CANCELLED, 0 }, { END_EXIT, 0 },
        { END_SIGNAL, 137 } };
    struct job *jobs[2] = { 0 };
    struct job_spec spec = { .cwd = TEXT("/"), .ask = { .array = TEXT("0-5") } };
    strings_add(&spec.command, "train");
    _cleanup_(job_freep) struct job *array = fixture_submit(fixture, &spec);
    strings_clear(&spec.command);
    for (uint32_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        fixture_apply(
            fixture, array, &(struct job_event){ .type = EVENT_SPLIT, .array_index = i, .element = 100 + i });
        fixture_apply(fixture, array,
            &(struct job_event){ .type = EVENT_MEMBER,
                .array_index = i,
                .element = 100 + i,
                .end = ends[i].end,
                .exit_code = ends[i].exit_code });
    }
    fixture_commit_all(fixture);
    fixture_close(fixture);
    assert_int_equal(fixture_sql(fixture, WITHOUT_NEWER "PRAGMA user_version = 7"), SQLITE_OK);
    fixture_open(fixture);
    assert_int_equal(store_load_jobs(fixture->store, 0, keep_job, jobs, &fixture->err), 0);
    assert_int_equal(jobs[1]->array_done, array->array_done);
    assert_int_equal(jobs[1]->array_done, 2);
    assert_int_equal(jobs[1]->array_cancelled, 1);
    assert_int_equal(jobs[1]->array_exit_max, 137);
    job_free(jobs[1]);
}

/* --- what is new --- */

static void allocate_share(struct fixture *fixture, struct job *job, uint32_t slot, uint32_t share)
{
    struct job_event event = { .type = EVENT_ALLOCATED,
        .attempt = 1,
        .token = job->id,
        .node = TEXT("n"),
        .cpu_milli = 500,
        .memory = 9 };
    gpu_grants_add(&event.gpus, 0, "GPU-0", slot, 0)->share = share;
    fixture_apply(fixture, job, &event);
    gpu_grants_clear(&event.gpus);
}

CASE(the_shares_of_a_gpu_add_up_to_the_whole_and_no_more, fixture)
{
    _cleanup_(job_freep) struct job *first = fixture_submit(fixture, NULL);
    _cleanup_(job_freep) struct job *second = fixture_submit(fixture, NULL);
    _cleanup_(job_freep) struct job *third = fixture_submit(fixture, NULL);
    allocate_share(fixture, first, 1, 400);
    allocate_share(fixture, second, 2, 600);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    allocate_share(fixture, third, 3, 1);
    assert_false(fixture_wait(fixture, fixture_commit(fixture)));
    assert_non_null(strstr(fixture->failure.message, "more than the whole"));
}

CASE(gpus_of_several_nodes_are_booked_where_they_are, fixture)
{
    struct job_spec spec = { .cwd = TEXT("/"), .ask = { .gpus = 2 } };
    strings_add(&spec.command, "true");
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, &spec);
    strings_clear(&spec.command);
    struct job_event event = { .type = EVENT_ALLOCATED, .attempt = 1, .token = 1, .node = TEXT("a") };
    gpu_grants_add(&event.gpus, 0, "GPU-0", 0, 0);
    gpu_grants_add(&event.gpus, 0, "GPU-0", 0, 0)->node = xstrdup("b");
    job_nodes_add(&event.nodes, "a", "boot-a");
    job_nodes_add(&event.nodes, "b", "boot-b");
    fixture_apply(fixture, job, &event);
    event.node = NULL;
    job_event_clear(&event);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM gpu_alloc WHERE node = 'b'"), 1);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(a_job_that_is_put_back_gives_its_gpus_back, fixture)
{
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    fixture_allocate(fixture, job, 0, 0);
    fixture_event(fixture, job, EVENT_STARTED);
    fixture_apply(fixture, job, &(struct job_event){ .type = EVENT_PREEMPTED, .attempt = 1 });
    fixture_apply(fixture, job, &(struct job_event){ .type = EVENT_REQUEUED, .attempt = 1 });
    fixture_commit_all(fixture);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM gpu_alloc"), 0);
    fixture_allocate(fixture, job, 0, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
}

CASE(idleness_and_what_follows_are_kept, fixture)
{
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    struct job *jobs[2] = { 0 };
    fixture_allocate(fixture, job, 0, 0);
    fixture_event(fixture, job, EVENT_STARTED);
    fixture_apply(fixture, job,
        &(struct job_event){
            .type = EVENT_IDLE, .attempt = 1, .wall_ms = 700, .idle_level = IDLE_WARNED, .idle_ms = 5 });
    fixture_apply(fixture, job,
        &(struct job_event){
            .type = EVENT_IDLE, .attempt = 1, .wall_ms = 900, .idle_level = IDLE_YIELDS, .idle_ms = 9 });
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    assert_int_equal(fixture_number(fixture, "SELECT count(*) FROM events WHERE type = 14"), 2);
    assert_int_equal(store_load_jobs(fixture->store, 0, keep_job, jobs, &fixture->err), 0);
    assert_int_equal(jobs[1]->idle_level, IDLE_YIELDS);
    assert_int_equal(job_run(jobs[1])->idle_warned_ms, job_run(job)->idle_warned_ms);
    job_free(jobs[1]);
    fixture_apply(fixture, job, &(struct job_event){ .type = EVENT_PREEMPTED, .attempt = 1 });
    fixture_apply(fixture, job, &(struct job_event){ .type = EVENT_REQUEUED, .attempt = 1 });
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    assert_true(job->ask->preemptible);
}

CASE(edits_and_holds_are_kept, fixture)
{
    struct job_ask ask = { .gpus = 1, .after = TEXT("1"), .cpu_milli = 2500 };
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    struct job *jobs[2] = { 0 };
    fixture_apply(fixture, job, &(struct job_event){ .type = EVENT_HELD, .hold = HOLD_USER | HOLD_ADMIN });
    fixture_apply(fixture, job, &(struct job_event){ .type = EVENT_RELEASED, .hold = HOLD_USER });
    fixture_apply(fixture, job,
        &(struct job_event){
            .type = EVENT_EDITED, .name = TEXT("new"), .ask = { .items = &ask, .count = 1 } });
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    assert_int_equal(store_load_jobs(fixture->store, 0, keep_job, jobs, &fixture->err), 0);
    assert_int_equal(jobs[1]->hold, HOLD_ADMIN);
    assert_int_equal(jobs[1]->ask->cpu_milli, 2500);
    assert_string_equal(jobs[1]->name, "new");
    job_free(jobs[1]);
}

struct fetched {
    char word[16];
    bool is_done;
};

static void on_spec(void *arg, uint64_t job, struct spec_bytes *bytes)
{
    struct fetched *fetched = arg;
    struct job_spec *spec = spec_bytes_decode(bytes);
    (void)snprintf(fetched->word, sizeof(fetched->word), "%s", spec != NULL ? spec->command.items[0] : "-");
    fetched->is_done = true;
    job_spec_free(spec);
    spec_bytes_drop(bytes);
}

CASE(an_element_has_the_specification_of_its_array, fixture)
{
    struct job_spec spec = { .cwd = TEXT("/"), .ask = { .array = TEXT("3-4") } };
    struct fetched fetched = { 0 };
    strings_add(&spec.command, "train");
    _cleanup_(job_freep) struct job *array = fixture_submit(fixture, &spec);
    _cleanup_(job_freep) struct job *element = job_new(fixture->next_job++, &spec);
    strings_clear(&spec.command);
    struct job_event submitted = { .type = EVENT_SUBMITTED, .array_job = array->id, .array_index = 3 };
    fixture_apply(
        fixture, array, &(struct job_event){ .type = EVENT_SPLIT, .array_index = 3, .element = element->id });
    fixture_apply(fixture, element, &submitted);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    store_fetch_spec(fixture->store, element->id, on_spec, &fetched);
    fixture_dispatch_until(fixture, &fetched.is_done);
    assert_string_equal(fetched.word, "train");
    fixture_apply(fixture, element, &(struct job_event){ .type = EVENT_STOP });
    fixture_apply(fixture, array,
        &(struct job_event){ .type = EVENT_MEMBER, .element = element->id, .end = END_CANCELLED });
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
}

static void add_cluster_event(struct fixture *fixture, const struct cluster_change *change)
{
    struct job_event event = { .type = EVENT_CLUSTER,
        .change = { .items = change != NULL ? (void *)(uintptr_t)change : NULL, .count = change != NULL } };
    fixture_apply(fixture, NULL, &event);
}

CASE(changes_of_the_cluster_are_events_of_no_job, fixture)
{
    const struct cluster_change drain = { .kind = CHANGE_NODE_DRAIN, .node = TEXT("n") };
    const struct cluster_change broken = { .kind = CHANGE_NODE_DRAIN };
    add_cluster_event(fixture, &drain);
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 0);
    add_cluster_event(fixture, &broken);
    add_cluster_event(fixture, NULL);
    fixture_commit_all(fixture);
    assert_int_equal(fixture_fsck(fixture), 2);
    assert_true(fixture_sql(fixture, "INSERT INTO events VALUES (900, 0, 0, 1, 1, x'00')") != SQLITE_OK);
    assert_true(fixture_sql(fixture, "INSERT INTO events VALUES (900, 1, 0, 13, 1, x'00')") != SQLITE_OK);
}

static void show_state(void *arg, const char *kind, const char *key, const uint8_t *bytes, size_t length)
{
    buffer_printf(arg, "%s/%s=%.*s ", kind, key, (int)length, length > 0 ? (const char *)bytes : "");
}

static void put_state(struct fixture *fixture, const char *kind, const char *key, const char *value)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    buffer_append_text(&bytes, value);
    store_batch_put(fixture->batch, kind, key, &bytes);
}

CASE(the_state_of_the_cluster_is_put_replaced_and_removed, fixture)
{
    _cleanup_buffer_ struct buffer shown = { 0 };
    fixture->batch = store_batch_new(++fixture->next_batch);
    put_state(fixture, "node", "b", "1");
    put_state(fixture, "node", "a", "2");
    put_state(fixture, "gpu", "z", "3");
    put_state(fixture, "gpu", "none", "");
    put_state(fixture, "node", "b", "4");
    assert_int_equal(store_batch_count(fixture->batch), 5);
    fixture_commit_all(fixture);
    fixture->batch = store_batch_new(++fixture->next_batch);
    store_batch_remove(fixture->batch, "gpu", "z");
    store_batch_remove(fixture->batch, "gpu", "never");
    fixture_commit_all(fixture);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(store_load_state(fixture->store, show_state, &shown, &fixture->err), 0);
    assert_string_equal(buffer_text(&shown), "gpu/none= node/a=2 node/b=4 ");
}
