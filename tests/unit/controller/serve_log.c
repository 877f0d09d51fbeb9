/* SPDX-License-Identifier: MIT */
/* Output of jobs: whole, in parts, and while it grows. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"
#include "wire/limits.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

static struct answer get_range(struct harness *harness, const char *path, const char *range)
{
    _cleanup_free_ char *request = xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nRange: %s\r\n\r\n", path, range);
    return client_ask(harness, request);
}

static void set_log(struct harness *harness, const char *log)
{
    harness->log = log;
    harness->log_length = strlen(log);
}

CASE(a_log_is_sent_byte_for_byte, harness)
{
    struct job *job = harness_add_job(harness, 3, getuid(), JOB_DONE);
    set_log(harness, "hello\nworld\n");
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "hello\nworld\n");
    assert_non_null(strstr(answer.head, "Content-Length: 12\r\n"));
    assert_int_equal(harness->opened.uid, job->uid);
    assert_int_equal(harness->opened.follow, 0);
}

CASE(ranges_follow_the_rfc, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_DONE);
    set_log(harness, "0123456789");
    static const struct {
        const char *range;
        unsigned status;
        const char *body, *span;
    } cases[] = {
        { "bytes=0-", 206, "0123456789", "bytes 0-9/10" },
        { "bytes=4-", 206, "456789", "bytes 4-9/10" },
        { "bytes=4-5", 206, "45", "bytes 4-5/10" },
        { "bytes=4-400", 206, "456789", "bytes 4-9/10" },
        { "bytes=-3", 206, "789", "bytes 7-9/10" },
        { "bytes=-300", 206, "0123456789", "bytes 0-9/10" },
        { "bytes=10-", 416, NULL, "bytes */10" },
        { "bytes=5-4", 416, NULL, NULL },
        { "bytes=a-", 416, NULL, NULL },
        { "lines=1-", 416, NULL, NULL },
        { "bytes=-0", 416, NULL, NULL },
        { "bytes=1-2,4-5", 416, NULL, NULL },
        { "bytes=99999999999999999999-", 416, NULL, NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answer answer = get_range(harness, "/api/v1/jobs/3/log", cases[i].range);
        assert_int_equal(answer.status, cases[i].status);
        if (cases[i].body != NULL)
            assert_string_equal(answer.body, cases[i].body);
        if (cases[i].span != NULL)
            assert_non_null(strstr(answer.head, cases[i].span));
        answer_clear(&answer);
    }
}

CASE(an_empty_log_is_an_empty_answer, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_DONE);
    set_log(harness, "");
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.length, 0);
    assert_false(answer.is_cut);
}

CASE(head_of_a_log_tells_its_size, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_DONE);
    set_log(harness, "0123456789");
    _cleanup_(answer_clear) struct answer answer =
        client_ask(harness, "HEAD /api/v1/jobs/3/log HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Content-Length: 10\r\n"));
}

CASE(a_job_without_output_is_404, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_QUEUED);
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 404);
    assert_string_equal(answer_string(&answer, "hint"), "mgpu logs -f 3 waits for it");
}

CASE(a_node_that_is_away_is_503, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_DONE);
    harness->core.node.is_up = false;
    struct answer answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer_string(&answer, "code"), "node_away");
    answer_clear(&answer);
    harness->core.node.is_up = true;
    harness->is_log_mute = true;
    answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 503);
    answer_clear(&answer);
}

CASE(a_log_that_cannot_be_opened_tells_why, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_DONE);
    harness->log_error = ENOENT;
    struct answer answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 404);
    answer_clear(&answer);
    harness->log_error = EACCES;
    answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 403);
    answer_clear(&answer);
}

CASE(a_log_that_shrank_is_cut_off_not_ended, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_DONE);
    set_log(harness, "01234");
    harness->log_missing = 5; // it had ten bytes when it was opened
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Content-Length: 10\r\n"));
    assert_true(answer.is_cut);
}

/* To follow a log that grows no more is to read it. */
CASE(a_followed_log_of_a_job_that_is_over_is_cut_off_too, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_DONE);
    set_log(harness, "01234");
    harness->log_missing = 5;
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/jobs/3/log?follow=1");
    assert_int_equal(answer.status, 200);
    assert_true(answer.is_cut);
}

/* Sends the request for a followed log; returns the client once the agent has been asked. */
static int follow(struct harness *harness, const char *range)
{
    _cleanup_free_ char *ask =
        xasprintf("GET /api/v1/jobs/3/log?follow=1 HTTP/1.1\r\nHost: x\r\n%s\r\n", range);
    int fd = client_connect(harness);
    assert_true(client_send(harness, fd, ask, strlen(ask)));
    return fd;
}

static void await_agent(struct harness *harness)
{
    while (harness->agent_fd < 0)
        harness_turn(harness, 10);
}

CASE(following_waits_for_the_start_and_ends_with_the_job, harness)
{
    struct job *job = harness_add_job(harness, 3, getuid(), JOB_QUEUED);
    set_log(harness, "first ");
    _cleanup_close_ int fd = follow(harness, "");
    while (harness->waiters == NULL)
        harness_turn(harness, 10);
    job->node = xstrdup("here");
    job_make_run(job)->log_path = xstrdup("/log");
    harness_set_state(harness, job, JOB_RUNNING);
    await_agent(harness);
    assert_int_equal(harness->opened.follow, 1);
    char *text = client_read_until(harness, fd, "first ");
    assert_non_null(strstr(text, "Transfer-Encoding: chunked"));
    free(text);
    assert_int_equal(send(harness->agent_fd, "second ", 7, 0), 7);
    text = client_read_until(harness, fd, "second ");
    assert_non_null(strstr(text, "second "));
    free(text);
    harness_set_state(harness, job, JOB_DONE);
    assert_true(client_is_closed(harness, harness->agent_fd)); // our side is shut down
    assert_int_equal(send(harness->agent_fd, "last", 4, 0), 4);
    close(harness->agent_fd);
    harness->agent_fd = -1;
    text = client_read_until(harness, fd, "0\r\n\r\n");
    assert_string_equal(text, "4\r\nlast\r\n0\r\n\r\n");
    free(text);
}

/* Else nobody could tell it from the end. */
CASE(a_followed_log_whose_node_goes_after_the_end_is_cut_off, harness)
{
    struct job *job = harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    set_log(harness, "first ");
    _cleanup_close_ int fd = follow(harness, "");
    await_agent(harness);
    free(client_read_until(harness, fd, "first "));
    job_make_run(job)->log_bytes = 11;
    harness_set_state(harness, job, JOB_DONE);
    assert_true(client_is_closed(harness, harness->agent_fd));
    assert_int_equal(send(harness->agent_fd, "last", 4, 0), 4);
    close(harness->agent_fd);
    harness->agent_fd = -1;
    _cleanup_free_ char *text = client_read_until(harness, fd, "0\r\n\r\n");
    assert_string_equal(text, "4\r\nlast\r\n");
}

CASE(a_job_may_be_silent_for_long, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    set_log(harness, "first ");
    _cleanup_close_ int fd = follow(harness, "");
    await_agent(harness);
    free(client_read_until(harness, fd, "first "));
    int64_t until = clock_boot_ms() + 3 * HARNESS_STREAM_MS;
    while (clock_boot_ms() < until)
        harness_turn(harness, 10);
    assert_int_equal(send(harness->agent_fd, "second ", 7, MSG_NOSIGNAL), 7);
    _cleanup_free_ char *text = client_read_until(harness, fd, "second ");
    assert_non_null(strstr(text, "second "));
}

CASE(following_a_job_that_never_starts_is_404, harness)
{
    struct job *job = harness_add_job(harness, 3, getuid(), JOB_QUEUED);
    _cleanup_close_ int fd = follow(harness, "");
    while (harness->waiters == NULL)
        harness_turn(harness, 10);
    job->end = END_CANCELLED;
    harness_set_state(harness, job, JOB_DONE);
    _cleanup_(answer_clear) struct answer answer = client_receive(harness, fd, false);
    assert_int_equal(answer.status, 404);
}

CASE(following_may_begin_anywhere, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    set_log(harness, "0123456789");
    _cleanup_close_ int fd = follow(harness, "Range: bytes=-2\r\n");
    char *text = client_read_until(harness, fd, "89\r\n");
    assert_non_null(strstr(text, "HTTP/1.1 206"));
    assert_non_null(strstr(text, "\r\n\r\n2\r\n89\r\n"));
    free(text);
    assert_int_equal(harness->opened.offset, 8);
}

CASE(a_node_that_breaks_off_cuts_the_answer_off, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    set_log(harness, "abc");
    _cleanup_close_ int fd = follow(harness, "");
    await_agent(harness);
    free(client_read_until(harness, fd, "abc"));
    close(harness->agent_fd);
    harness->agent_fd = -1;
    _cleanup_free_ char *text = client_read_until(harness, fd, "0\r\n\r\n");
    assert_null(strstr(text, "0\r\n\r\n"));
}

CASE(a_client_that_leaves_takes_its_stream_along, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    set_log(harness, "abc");
    int fd = follow(harness, "");
    await_agent(harness);
    close(fd);
    assert_true(client_is_closed(harness, harness->agent_fd));
}

CASE(a_slow_reader_holds_back_the_agent, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    harness->is_log_large = true;
    _cleanup_close_ int fd = follow(harness, "");
    await_agent(harness);
    uint64_t before;
    do { // until nothing moves any more
        before = harness->agent_sent;
        for (int i = 0; i < 20; i++)
            harness_turn(harness, 5);
    } while (harness->agent_sent != before);
    assert_true(harness->agent_sent > LIMIT_STREAM_BUFFER_BYTES);
    assert_true(harness->agent_sent < LIMIT_STREAM_BUFFER_BYTES + (2U << 20)); // and what sockets hold
    char *text = client_read_until(harness, fd, "xxxx");
    free(text);
    struct answer answer = client_get(harness, "/healthz");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
    for (int i = 0; i < 100 && harness->agent_sent == before; i++)
        free(client_read_until(harness, fd, "xxxx"));
    assert_true(harness->agent_sent > before);
}

CASE(one_user_may_not_open_all_logs, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_QUEUED);
    int clients[LIMIT_USER_FOLLOWS];
    for (int i = 0; i < LIMIT_USER_FOLLOWS; i++)
        clients[i] = follow(harness, "");
    struct answer answer = client_get(harness, "/api/v1/jobs/3/log?follow=1");
    assert_int_equal(answer.status, 429);
    assert_string_equal(answer_string(&answer, "code"), "too_many");
    answer_clear(&answer);
    for (int i = 0; i < LIMIT_USER_FOLLOWS; i++)
        close(clients[i]);
    while (harness->waiters != NULL)
        harness_turn(harness, 5);
    answer = client_get(harness, "/api/v1/jobs/3/log");
    assert_int_equal(answer.status, 404);
    answer_clear(&answer);
}
