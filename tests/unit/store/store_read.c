/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "store/store_row.h"
#include "store_fixture.h"
#include "unit_test.h"

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, fixture_setup, fixture_teardown)

#define MANY      300
#define PROMPT_MS 10000

struct answers {
    char order[16]; // one letter per answer
    size_t count;
    uint64_t job;
    struct job *row;
    struct job_spec *spec;
    uint64_t seqs[64];
    size_t n_events;
    bool is_complete;
    size_t wanted;
};

static void note(struct answers *answers, char letter)
{
    answers->order[answers->count++] = letter;
    answers->is_complete = answers->count == answers->wanted;
}

static void on_spec(void *arg, uint64_t job, struct spec_bytes *spec)
{
    struct answers *answers = arg;
    job_spec_free(answers->spec);
    answers->spec = spec_bytes_decode(spec);
    spec_bytes_drop(spec);
    answers->job = job;
    note(answers, spec != NULL ? 's' : '-');
}

static void on_job(void *arg, uint64_t job, struct job *row)
{
    struct answers *answers = arg;
    job_free(answers->row);
    answers->row = row;
    answers->job = job;
    note(answers, row != NULL ? 'j' : '-');
}

static void on_events(void *arg, const struct job_event *events, size_t count)
{
    struct answers *answers = arg;
    answers->n_events = count;
    for (size_t i = 0; i < count && i < 64; i++)
        answers->seqs[i] = events[i].seq;
    note(answers, 'e');
}

struct ids {
    char list[64]; // "3 1 "
    uint64_t next;
    bool is_complete;
};

static void on_ids(void *arg, const uint64_t *ids, size_t count, uint64_t next)
{
    struct ids *found = arg;
    for (size_t i = 0; i < count; i++)
        (void)snprintf(found->list + strlen(found->list), sizeof(found->list) - strlen(found->list),
            "%" PRIu64 " ", ids[i]);
    found->next = next;
    found->is_complete = true;
}

static void clear_answers(struct answers *answers)
{
    job_free(answers->row);
    job_spec_free(answers->spec);
}

CASE(answers_come_in_the_order_of_the_questions, fixture)
{
    _cleanup_(clear_answers) struct answers answers = { .wanted = 4 };
    fixture_run_job(fixture, 0);
    (void)fixture_commit(fixture);
    store_fetch_job(fixture->store, 1, on_job, &answers);
    store_fetch_spec(fixture->store, 1, on_spec, &answers);
    store_fetch_job(fixture->store, 2, on_job, &answers);
    store_fetch_spec(fixture->store, 2, on_spec, &answers);
    fixture_dispatch_until(fixture, &answers.is_complete);
    assert_string_equal(answers.order, "js--");
    assert_int_equal(fixture->durable, 1);
    assert_int_equal(answers.job, 2);
}

CASE(the_end_of_a_commit_does_not_wait_for_pages_before_it, fixture)
{
    _cleanup_(clear_answers) struct answers answers = { .wanted = 1 };
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_fetch_events(fixture->store, 0, 0, 10, on_events, &answers);
    fixture_run_job(fixture, 0);
    uint64_t batch = fixture_commit(fixture);
    while (fixture->durable < batch) {
        struct pollfd ready = { .fd = store_prompt_fd(fixture->store), .events = POLLIN };
        assert_int_equal(poll(&ready, 1, PROMPT_MS), 1);
        store_dispatch_prompt(fixture->store);
    }
    assert_false(answers.is_complete);
    fixture_dispatch_until(fixture, &answers.is_complete);
    assert_string_equal(answers.order, "e");
}

/* Else what they hold for the answer would never be let go. */
CASE(who_still_waits_at_the_end_is_answered_with_nothing, fixture)
{
    _cleanup_(clear_answers) struct answers answers = { .wanted = 4 };
    fixture_run_job(fixture, 0);
    fixture_commit_all(fixture);
    store_fetch_job(fixture->store, 1, on_job, &answers);
    store_fetch_spec(fixture->store, 1, on_spec, &answers);
    store_fetch_events(fixture->store, 0, 0, 10, on_events, &answers);
    store_fetch_job(fixture->store, 2, on_job, &answers);
    fixture_close(fixture);
    assert_true(answers.is_complete);
    assert_null(answers.row);
    assert_null(answers.spec);
}

CASE(a_job_is_read_as_it_was_written, fixture)
{
    _cleanup_(clear_answers) struct answers answers = { .wanted = 1 };
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "/opt/a b/train.py");
    strings_add(&spec.command, "--name=\"x\"; DROP TABLE jobs; \xc3\xbc");
    spec.cwd = xstrdup("/home/user");
    spec.ask.gpu_ids = xstrdup("3");
    spec.ask.priority = -7;
    spec.ask.gpu_mem = UINT64_MAX;
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, &spec);
    job_spec_clear(&spec);
    fixture_allocate(fixture, job, 3, 2);
    fixture_event(fixture, job, EVENT_STARTED);
    fixture_event(fixture, job, EVENT_ENDED);
    fixture_commit_all(fixture);
    store_fetch_job(fixture->store, job->id, on_job, &answers);
    fixture_dispatch_until(fixture, &answers.is_complete);
    assert_non_null(answers.row);
    assert_null(store_row_difference(job, answers.row));
    assert_int_equal(answers.row->ask->priority, -7);
    assert_true(answers.row->token == 0xfedcba9876543211ULL);
}

CASE(a_waiting_job_is_read_without_what_belongs_to_an_attempt, fixture)
{
    _cleanup_(clear_answers) struct answers answers = { .wanted = 1 };
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    fixture_commit_all(fixture);
    store_fetch_job(fixture->store, job->id, on_job, &answers);
    fixture_dispatch_until(fixture, &answers.is_complete);
    assert_non_null(answers.row);
    assert_null(answers.row->run);
    assert_null(store_row_difference(job, answers.row));
    assert_null(store_row_difference(answers.row, job));
}

CASE(a_specification_is_read_as_it_was_written, fixture)
{
    _cleanup_(clear_answers) struct answers answers = { .wanted = 1 };
    _cleanup_(job_freep) struct job *job = fixture_submit(fixture, NULL);
    fixture_commit_all(fixture);
    store_fetch_spec(fixture->store, job->id, on_spec, &answers);
    fixture_dispatch_until(fixture, &answers.is_complete);
    assert_string_equal(answers.spec->command.items[0], "true");
    assert_string_equal(answers.spec->env.items[0], "PATH=/usr/bin:/bin");
    assert_string_equal(answers.spec->cwd, "/tmp");
}

CASE(events_are_cut_by_number_job_and_limit, fixture)
{
    for (uint32_t i = 0; i < 3; i++)
        fixture_run_job(fixture, i);
    fixture_commit_all(fixture);
    static const struct {
        uint64_t after, job, first;
        size_t limit, count;
    } rows[] = {
        { 0, 0, 1, 100, 12 },
        { 5, 0, 6, 3, 3 },
        { 0, 2, 5, 100, 4 },
        { 6, 2, 7, 1, 1 },
        { 12, 0, 0, 100, 0 },
        { 0, 9, 0, 100, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_(clear_answers) struct answers answers = { .wanted = 1 };
        store_fetch_events(fixture->store, rows[i].after, rows[i].job, rows[i].limit, on_events, &answers);
        fixture_dispatch_until(fixture, &answers.is_complete);
        assert_int_equal(answers.n_events, rows[i].count);
        for (size_t k = 0; k < answers.n_events; k++)
            assert_int_equal(answers.seqs[k], rows[i].first + k);
    }
}

struct loaded {
    uint64_t ids[MANY];
    size_t count, done;
};

static void on_load(void *arg, struct job *job)
{
    struct loaded *loaded = arg;
    struct error err;
    assert_int_equal(job_invariant(job, &err), 0);
    loaded->ids[loaded->count++] = job->id;
    loaded->done += job->state == JOB_DONE;
    job_free(job);
}

CASE(ids_are_of_the_jobs_that_exist_however_far_apart_they_are, fixture)
{
    for (uint64_t id = 1; id <= 4; id++)
        job_free(fixture_submit(fixture, NULL));
    fixture->next_job = 2000000;
    job_free(fixture_submit(fixture, NULL));
    fixture_commit_all(fixture);
    assert_int_equal(
        fixture_sql(fixture, "UPDATE jobs SET uid = 7, name = iif(id = 2, 'zz', name) WHERE id < 3"), 0);
    static const struct {
        struct store_ids_query query;
        const char *list;
        uint64_t next;
    } cases[] = {
        { { STORE_NEWEST_FIRST, UINT64_MAX, 200000, STORE_ANY_USER, NULL }, "2000000 4 3 2 1 ", 0 },
        { { STORE_NEWEST_FIRST, UINT64_MAX, 2, STORE_ANY_USER, NULL }, "2000000 4 ", 4 },
        { { STORE_NEWEST_FIRST, 4, 2, STORE_ANY_USER, NULL }, "3 2 ", 2 },
        { { STORE_NEWEST_FIRST, 1, 2, STORE_ANY_USER, NULL }, "", 0 },
        { { STORE_NEWEST_FIRST, UINT64_MAX, 200000, 7, NULL }, "2 1 ", 0 },
        { { STORE_NEWEST_FIRST, UINT64_MAX, 3, 7, NULL }, "", 3 },
        { { STORE_NEWEST_FIRST, UINT64_MAX, 200000, 7, "z?" }, "2 ", 0 },
        { { STORE_OLDEST_FIRST, 0, 2, STORE_ANY_USER, NULL }, "1 2 ", 2 },
        { { STORE_OLDEST_FIRST, 2, 4, STORE_ANY_USER, NULL }, "3 4 2000000 ", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ids found = { .list = "" };
        store_fetch_ids(fixture->store, &cases[i].query, on_ids, &found);
        fixture_dispatch_until(fixture, &found.is_complete);
        assert_string_equal(found.list, cases[i].list);
        assert_int_equal(found.next, cases[i].next);
    }
}

CASE(a_start_loads_open_jobs_and_the_latest_ended_in_order, fixture)
{
    for (uint32_t i = 0; i < 20; i++)
        fixture_run_job(fixture, 0);
    for (uint32_t i = 0; i < 5; i++)
        job_free(fixture_submit(fixture, NULL));
    fixture_commit_all(fixture);
    static const struct {
        size_t recent, done;
    } rows[] = { { 0, 0 }, { 3, 3 }, { 1000, 20 }, { SIZE_MAX, 20 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct loaded loaded = { 0 };
        assert_int_equal(store_load_jobs(fixture->store, rows[i].recent, on_load, &loaded, &fixture->err), 0);
        assert_int_equal(loaded.done, rows[i].done);
        assert_int_equal(loaded.count, rows[i].done + 5);
        for (size_t k = 1; k < loaded.count; k++)
            assert_true(loaded.ids[k - 1] < loaded.ids[k]);
    }
}

CASE(a_damaged_row_is_never_loaded, fixture)
{
    static const char *const damages[] = {
        "UPDATE jobs SET uid = -1",
        "UPDATE jobs SET \"end\" = 99",
        "UPDATE jobs SET grants = x'0102'",
    };
    job_free(fixture_submit(fixture, NULL));
    fixture_commit_all(fixture);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        struct loaded loaded = { 0 };
        assert_int_equal(fixture_sql(fixture, damages[i]), SQLITE_OK);
        assert_int_equal(store_load_jobs(fixture->store, 0, on_load, &loaded, &fixture->err), -EUCLEAN);
        assert_non_null(strstr(fixture->err.message, "job 1"));
        assert_int_equal(
            fixture_sql(fixture, "UPDATE jobs SET uid = 1, \"end\" = 0, grants = NULL"), SQLITE_OK);
    }
}

CASE(a_read_that_fails_ends_the_store, fixture)
{
    _cleanup_(clear_answers) struct answers answers = { .wanted = 1 };
    job_free(fixture_submit(fixture, NULL));
    fixture_commit_all(fixture);
    assert_int_equal(fixture_sql(fixture, "UPDATE specs SET spec = x'00'"), SQLITE_OK);
    store_fetch_spec(fixture->store, 1, on_spec, &answers);
    fixture_dispatch_until(fixture, &fixture->has_failed);
    assert_int_equal(answers.count, 0);
    assert_int_equal(fixture->failed_batch, 0);
    store_fetch_job(fixture->store, 1, on_job, &answers);
    fixture_close(fixture);
    assert_string_equal(answers.order, "--");
}

struct key {
    uint64_t hash, job, spec_hash;
    size_t count;
};

static void on_key(void *arg, uint64_t key_hash, uint64_t job, uint64_t spec_hash)
{
    struct key *key = arg;
    *key = (struct key){ key_hash, job, spec_hash, key->count + 1 };
}

static struct job *submit_with_key(struct fixture *fixture, const char *name, uint64_t *ret_spec_hash)
{
    _cleanup_(job_spec_clear) struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "true");
    spec.cwd = xstrdup("/");
    spec.submit_key = xstrdup(name);
    struct job *job = fixture_submit(fixture, &spec);
    *ret_spec_hash = job_spec_hash(&spec);
    return job;
}

CASE(submit_keys_are_known_after_a_restart, fixture)
{
    uint64_t spec_hash;
    struct key key = { 0 };
    job_free(submit_with_key(fixture, "abc", &spec_hash));
    fixture_commit_all(fixture);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(store_load_keys(fixture->store, on_key, &key, &fixture->err), 0);
    assert_int_equal(key.count, 1);
    assert_int_equal(key.job, 1);
    assert_true(key.hash == store_key_hash(1000, "abc") && key.spec_hash == spec_hash);
}

/* With the submissions of another week, not with a clock that is set ahead. */
CASE(submit_keys_are_forgotten_when_others_are_a_week_younger, fixture)
{
    uint64_t spec_hash;
    struct key key = { 0 };
    job_free(submit_with_key(fixture, "abc", &spec_hash));
    job_free(submit_with_key(fixture, "def", &spec_hash));
    fixture_commit_all(fixture);
    assert_int_equal(
        fixture_sql(fixture, "UPDATE submit_keys SET created_ms = created_ms - 604801000"), SQLITE_OK);
    fixture_close(fixture);
    fixture_open(fixture);
    assert_int_equal(store_load_keys(fixture->store, on_key, &key, &fixture->err), 0);
    assert_int_equal(key.count, 2);
    assert_int_equal(
        fixture_sql(fixture, "UPDATE submit_keys SET created_ms = created_ms + 604801000 WHERE job = 2"),
        SQLITE_OK);
    fixture_close(fixture);
    fixture_open(fixture);
    key.count = 0;
    assert_int_equal(store_load_keys(fixture->store, on_key, &key, &fixture->err), 0);
    assert_int_equal(key.count, 1);
    assert_int_equal(key.job, 2);
}

CASE(a_key_used_again_stands_for_the_later_job, fixture)
{
    uint64_t spec_hash;
    struct key key = { 0 };
    job_free(submit_with_key(fixture, "abc", &spec_hash));
    job_free(submit_with_key(fixture, "abc", &spec_hash));
    fixture_commit_all(fixture);
    assert_int_equal(store_load_keys(fixture->store, on_key, &key, &fixture->err), 0);
    assert_int_equal(key.count, 1);
    assert_int_equal(key.job, 2);
}

CASE(two_users_never_share_a_key, fixture)
{
    assert_true(store_key_hash(1, "abc") != store_key_hash(2, "abc"));
    assert_true(store_key_hash(1, "abc") != store_key_hash(1, "abd"));
    assert_true(store_key_hash(1, "abc") == store_key_hash(1, "abc"));
}
