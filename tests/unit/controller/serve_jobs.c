/* SPDX-License-Identifier: MIT */
/* Submitting, showing, listing, waiting for and cancelling jobs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

CASE(a_submit_is_answered_with_the_job, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_post(harness, "/api/v1/jobs",
        "{\"command\":[\"python\",\"train.py\"],\"gpus\":2,\"name\":\"train\",\"cwd\":\"/tmp\","
        "\"env\":{\"A\":\"1\"},\"gpu_mem\":\"8G\",\"priority\":-3,\"umask\":18,\"setup\":null}");
    assert_int_equal(answer.status, 201);
    assert_string_equal(answer_string(&answer, "schema"), "mgpu/v1");
    assert_string_equal(answer_string(&answer, "state"), "queued");
    assert_string_equal(answer_string(&answer, "command"), "python train.py");
    assert_int_equal(answer_integer(&answer, "id"), 1);
    assert_int_equal(answer_integer(&answer, "gpu_mem"), 8LL << 30);
    assert_true(harness->asked_by.is_known);
    assert_int_equal(harness->asked_by.uid, getuid());
    assert_int_equal(harness->submitted->umask, 18);
    assert_int_equal(harness->submitted->ask.priority, -3);
    assert_string_equal(strings_get_env(&harness->submitted->env, "A"), "1");
}

CASE(a_command_of_one_string_goes_to_the_shell, harness)
{
    _cleanup_(answer_clear) struct answer answer =
        client_post(harness, "/api/v1/jobs", "{\"command\":\"a | b\"}");
    assert_int_equal(answer.status, 201);
    assert_int_equal(harness->submitted->command.count, 3);
    assert_string_equal(harness->submitted->command.items[0], "/bin/sh");
    assert_string_equal(harness->submitted->command.items[2], "a | b");
    assert_int_equal(harness->submitted->cwd[0], '/');
    assert_int_equal(harness->submitted->ask.gpus, 1);
}

CASE(gpus_follow_the_ids, harness)
{
    struct answer answer =
        client_post(harness, "/api/v1/jobs", "{\"command\":\"true\",\"gpu_ids\":\"0,2-3\"}");
    assert_int_equal(answer.status, 201);
    assert_int_equal(harness->submitted->ask.gpus, 3);
    answer_clear(&answer);
}

CASE(a_full_store_takes_no_job, harness)
{
    harness->is_store_full = true;
    _cleanup_(answer_clear) struct answer answer =
        client_post(harness, "/api/v1/jobs", "{\"command\":\"true\"}");
    assert_int_equal(answer.status, 507);
    assert_string_equal(answer_string(&answer, "code"), "store_full");
}

CASE(a_log_without_space_refuses_jobs, harness)
{
    harness->is_log_full = true;
    _cleanup_(answer_clear) struct answer answer =
        client_post(harness, "/api/v1/jobs", "{\"command\":\"true\"}");
    assert_int_equal(answer.status, 507);
    assert_string_equal(answer_string(&answer, "code"), "store_full");
}

CASE(the_cores_refusals_have_their_status, harness)
{
    static const struct {
        int code;
        unsigned status;
        const char *word;
    } cases[] = { { -EDQUOT, 429, "queue_full" }, { -EEXIST, 409, "key_conflict" },
        { -ERANGE, 400, "invalid" }, { -EBADSLT, 400, "unsatisfiable" }, { -EPERM, 403, "not_allowed" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        harness->submit_code = cases[i].code;
        struct answer answer = client_post(harness, "/api/v1/jobs", "{\"command\":\"true\"}");
        assert_int_equal(answer.status, cases[i].status);
        assert_string_equal(answer_string(&answer, "code"), cases[i].word);
        answer_clear(&answer);
    }
}

CASE(a_rootless_mgpud_takes_no_jobs_of_others, harness)
{
    harness->controller.is_root = false;
    harness->controller.admin_uid = getuid() + 1;
    _cleanup_(answer_clear) struct answer answer =
        client_post(harness, "/api/v1/jobs", "{\"command\":\"true\"}");
    assert_int_equal(answer.status, 403);
}

CASE(a_failed_commit_is_told_as_unknown, harness)
{
    harness->is_submit_held = true;
    _cleanup_close_ int fd = client_connect(harness);
    static const char ask[] =
        "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 18\r\n\r\n{\"command\":\"true\"}";
    assert_true(client_send(harness, fd, ask, sizeof(ask) - 1));
    while (harness->submitted == NULL)
        harness_turn(harness, 10);
    struct error err = { 0 };
    (void)error_set(&err, -EIO, "disk I/O error");
    serve_fail_all(harness->controller.serve, &err);
    _cleanup_(answer_clear) struct answer answer = client_receive(harness, fd, false);
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer_string(&answer, "outcome"), "unknown");
}

CASE(a_client_that_leaves_is_forgotten, harness)
{
    harness->is_submit_held = true;
    _cleanup_close_ int fd = client_connect(harness);
    static const char ask[] =
        "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 18\r\n\r\n{\"command\":\"true\"}";
    assert_true(client_send(harness, fd, ask, sizeof(ask) - 1));
    while (harness->submitted == NULL)
        harness_turn(harness, 10);
    struct job *job = harness_add_job(harness, 77, getuid(), JOB_RUNNING);
    static const char wait[] = "GET /api/v1/jobs/77/wait HTTP/1.1\r\nHost: x\r\n\r\n";
    int waiting = client_connect(harness);
    assert_true(client_send(harness, waiting, wait, sizeof(wait) - 1));
    while (harness->waiters == NULL)
        harness_turn(harness, 10);
    unsigned before = harness->forgotten;
    close(waiting);
    while (harness->waiters != NULL)
        harness_turn(harness, 10);
    assert_int_equal(harness->forgotten, before + 1);
    harness_set_state(harness, job, JOB_DONE);
}

CASE(nothing_is_read_before_it_is_durable, harness)
{
    (void)harness_add_job(harness, 3, 1234, JOB_QUEUED);
    harness->is_barrier_held = true;
    static const char ask[] = "GET /api/v1/jobs/3 HTTP/1.1\r\nHost: x\r\n\r\n";
    _cleanup_close_ int fd = client_connect(harness);
    assert_true(client_send(harness, fd, ask, sizeof(ask) - 1));
    while (harness->barriers == 0)
        harness_turn(harness, 10);
    char byte;
    assert_int_equal(read(fd, &byte, 1), -1);
    harness_release_barriers(harness);
    _cleanup_(answer_clear) struct answer answer = client_receive(harness, fd, false);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer_integer(&answer, "position"), 3);
    assert_string_equal(answer_string(&answer, "reason"), "resources");
    assert_string_equal(answer_string(&answer, "reason_text"), "waits for a GPU");
}

CASE(the_environment_is_shown_to_the_owner_only, harness)
{
    harness->controller.admin_uid = 4321; // whoever runs this test is not an administrator, unless root
    (void)harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    (void)harness_add_job(harness, 4, getuid() + 1, JOB_RUNNING);
    harness_add_event(harness, 3, true);
    struct answer answer = client_get(harness, "/api/v1/jobs/3");
    assert_int_equal(answer.status, 200);
    assert_true(answer_has(&answer, "treasure"));
    assert_true(answer_has(&answer, "\"argv\":[\"sleep\",\"1\"]"));
    assert_true(answer_has(&answer, "\"events\":[{\"seq\":1,\"type\":\"started\""));
    answer_clear(&answer);
    if (getuid() == 0)
        return;
    answer = client_get(harness, "/api/v1/jobs/4");
    assert_int_equal(answer.status, 200);
    assert_false(answer_has(&answer, "treasure"));
    assert_false(answer_has(&answer, "argv"));
    answer_clear(&answer);
}

CASE(an_old_job_is_read_from_the_store, harness)
{
    (void)harness_add_row(harness, 9, getuid());
    struct answer answer = client_get(harness, "/api/v1/jobs/9");
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_string(&answer, "state"), "done");
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/jobs/10");
    assert_int_equal(answer.status, 404);
    assert_string_equal(answer_string(&answer, "detail"), "there is no job 10");
    answer_clear(&answer);
    answer = client_post(harness, "/api/v1/jobs/9/cancel", "");
    assert_int_equal(answer.status, 409);
    assert_string_equal(answer_string(&answer, "code"), "already_done");
    answer_clear(&answer);
}

#define IDS_SIZE 100

/* "10 30 " */
static const char *ids_of(const struct answer *answer, char ids[IDS_SIZE])
{
    ids[0] = '\0';
    for (const char *at = answer->body; (at = strstr(at, "{\"id\":")) != NULL; at++)
        (void)snprintf(ids + strlen(ids), IDS_SIZE - strlen(ids), "%d ", atoi(at + 6));
    return ids;
}

CASE(a_list_is_in_order_and_filtered, harness)
{
    (void)harness_add_job(harness, 30, 1, JOB_QUEUED);
    (void)harness_add_job(harness, 10, 2, JOB_RUNNING);
    struct job *old = harness_add_job(harness, 20, 1, JOB_DONE);
    old->ended_ms -= 7200000;
    (void)harness_add_job(harness, 40, 1, JOB_DONE);
    (void)harness_add_row(harness, 5, 1);
    (void)harness_add_row(harness, 2000000, 1); // after a restore, which leaves numbers unused
    static const struct {
        const char *query;
        const char *ids;
    } cases[] = {
        { "", "10 30 40 " },
        { "?all=1", "5 10 20 30 40 2000000 " },
        { "?all=1&limit=3", "30 40 2000000 " },
        { "?all=1&limit=4&user=1", "20 30 40 2000000 " },
        { "?all=1&user=2", "10 " },
        { "?state=done", "20 40 " },
        { "?state=queued,running", "10 30 " },
        { "?state=failed", "" },
        { "?user=2", "10 " },
        { "?name=sl*p&state=queued", "30 " },
        { "?name=x*", "" },
        { "?ids=40,5,10,99", "5 10 40 " },
        { "?limit=1", "40 " },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_free_ char *path = xasprintf("/api/v1/jobs%s", cases[i].query);
        struct answer answer = client_get(harness, path);
        assert_int_equal(answer.status, 200);
        char ids[IDS_SIZE];
        assert_string_equal(ids_of(&answer, ids), cases[i].ids);
        assert_string_equal(answer_string(&answer, "schema"), "mgpu/v1");
        answer_clear(&answer);
    }
}

CASE(a_list_comes_in_pages, harness)
{
    for (uint64_t id = 40; id >= 10; id -= 10)
        (void)harness_add_job(harness, id, id == 20 ? 2 : 1, JOB_QUEUED);
    (void)harness_add_row(harness, 5, 1);
    static const struct {
        const char *query, *ids, *next;
    } cases[] = {
        { "?after=0&limit=2", "10 20 ", "\"next\":20," },
        { "?after=20&limit=2", "30 40 ", "\"next\":null," },
        { "?after=10&limit=2&user=1", "30 40 ", "\"next\":null," },
        { "?after=40&limit=2", "", "\"next\":null," },
        { "?after=15&limit=1", "20 ", "\"next\":20," }, // a job that has gone since
        { "?after=0&limit=1&all=1", "5 ", "\"next\":5," },
        { "?after=5&limit=3&all=1", "10 20 30 ", "\"next\":30," },
        { "?after=5&limit=3&all=1&user=1", "10 30 ", "\"next\":30," },
        { "?after=30&limit=3&all=1", "40 ", "\"next\":null," },
        { "?after=7&all=1", "10 20 30 40 ", "\"next\":null," },
        { "?limit=2", "30 40 ", "\"next\":null," },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_free_ char *path = xasprintf("/api/v1/jobs%s", cases[i].query);
        struct answer answer = client_get(harness, path);
        char ids[IDS_SIZE];
        assert_int_equal(answer.status, 200);
        assert_string_equal(ids_of(&answer, ids), cases[i].ids);
        assert_true(answer_has(&answer, cases[i].next));
        answer_clear(&answer);
    }
}

CASE(a_short_list_has_the_next_in_line_and_says_how_many_more, harness)
{
    for (uint64_t id = 1; id <= 9; id++)
        (void)harness_add_job(harness, id, id % 3 == 0 ? 2 : 1, id < 5 ? JOB_RUNNING : JOB_QUEUED);
    harness_add_job(harness, 10, 1, JOB_QUEUED)->hold = HOLD_USER;
    static const struct {
        const char *query, *ids, *omitted;
    } cases[] = {
        { "?top=2", "3 4 8 9 ", "\"omitted\":{\"queued\":4,\"running\":2}}" },
        { "?top=2&user=1", "2 4 7 8 ", "\"omitted\":{\"queued\":2,\"running\":1}}" },
        { "?top=4&user=1&state=queued", "5 7 8 10 ", "\"omitted\":{}}" }, // the held one is in no line
        { "?top=100&state=running", "1 2 3 4 ", "\"omitted\":{}}" },
        { "?state=running", "1 2 3 4 ", "\"omitted\":null}" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_free_ char *path = xasprintf("/api/v1/jobs%s", cases[i].query);
        struct answer answer = client_get(harness, path);
        char ids[IDS_SIZE];
        assert_int_equal(answer.status, 200);
        assert_string_equal(ids_of(&answer, ids), cases[i].ids);
        assert_true(answer_has(&answer, cases[i].omitted));
        answer_clear(&answer);
    }
}

CASE(a_bad_filter_is_refused, harness)
{
    static const char *const queries[] = { "?state=qeued", "?state=", "?user=nobody-of-that-name", "?ids=x",
        "?ids=", "?all=yes", "?limit=0", "?state=done&state=queued", "?after=x", "?after=-1",
        "?after=1&ids=1", "?top=0", "?top=10001", "?top=1&all=1", "?top=1&after=1", "?top=1&ids=1" };
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        _cleanup_free_ char *path = xasprintf("/api/v1/jobs%s", queries[i]);
        struct answer answer = client_get(harness, path);
        assert_int_equal(answer.status, 400);
        if (strstr(queries[i], "user=") != NULL)
            assert_true(answer_has(&answer, "user: there is no user 'nobody-of-that-name'"));
        answer_clear(&answer);
    }
}

CASE(a_long_list_is_streamed_with_bounded_memory, harness)
{
    for (uint64_t id = 1; id <= 4000; id++)
        (void)harness_add_job(harness, id, 1, JOB_QUEUED);
    struct answer answer = client_get(harness, "/api/v1/jobs");
    assert_int_equal(answer.status, 200);
    assert_false(answer.is_cut);
    assert_non_null(strstr(answer.head, "chunked"));
    assert_true(harness->barriers > 4);
    assert_true(answer_has(&answer, "{\"id\":4000,"));
    assert_true(answer_has(&answer, "\"position\":null"));
    assert_string_equal(answer_string(&answer, "schema"), "mgpu/v1");
    answer_clear(&answer);
    answer = client_ask(harness, "HEAD /api/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
}

CASE(a_wait_ends_with_the_job, harness)
{
    struct job *job = harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    static const char ask[] = "GET /api/v1/jobs/3/wait?states=done&timeout=5 HTTP/1.1\r\nHost: x\r\n\r\n";
    _cleanup_close_ int fd = client_connect(harness);
    assert_true(client_send(harness, fd, ask, sizeof(ask) - 1));
    while (harness->waiters == NULL)
        harness_turn(harness, 10);
    job->end = END_EXIT;
    job->exit_code = 3;
    job->ended_ms = job->submitted_ms;
    harness_set_state(harness, job, JOB_DONE);
    _cleanup_(answer_clear) struct answer answer = client_receive(harness, fd, false);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_string(&answer, "state"), "failed");
    assert_int_equal(answer_integer(&answer, "exit_code"), 3);
}

CASE(a_wait_that_takes_too_long_is_408, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/jobs/3/wait?timeout=20ms");
    assert_int_equal(answer.status, 408);
    assert_string_equal(answer_string(&answer, "code"), "timeout");
    assert_null(harness->waiters);
}

CASE(a_wait_for_what_cannot_come_is_409, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_DONE);
    struct answer answer = client_get(harness, "/api/v1/jobs/3/wait?states=queued");
    assert_int_equal(answer.status, 409);
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/jobs/3/wait?states=running");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/jobs/3/wait?timeout=never");
    assert_int_equal(answer.status, 400);
    answer_clear(&answer);
}

CASE(a_cancel_is_accepted, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    struct answer answer = client_post(harness, "/api/v1/jobs/3/cancel", "{\"grace_s\":4}");
    assert_int_equal(answer.status, 202);
    assert_int_equal(harness->grace_ms, 4000);
    assert_string_equal(answer_string(&answer, "state"), "cancelled");
    answer_clear(&answer);
    answer = client_post(harness, "/api/v1/jobs/3/cancel", "");
    assert_int_equal(answer.status, 409);
    answer_clear(&answer);
    (void)harness_add_job(harness, 4, getuid(), JOB_RUNNING);
    answer = client_post(harness, "/api/v1/jobs/4/cancel", "{\"grace_s\":-4}");
    assert_int_equal(answer.status, 400);
    answer_clear(&answer);
    answer = client_post(harness, "/api/v1/jobs/4/cancel", "");
    assert_int_equal(answer.status, 202);
    assert_int_equal(harness->grace_ms, -1);
    answer_clear(&answer);
}
