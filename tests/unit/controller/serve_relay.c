/* SPDX-License-Identifier: MIT */
/* A connection that is taken over: which requests get one, and that it relays bytes in both directions within
 * limits. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/terminal.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"
#include "wire/limits.h"

#define UPGRADE "Host: x\r\nConnection: Upgrade\r\nUpgrade: mgpu-terminal\r\n\r\n"

static int start(void **state)
{
    struct harness *harness = harness_new();
    struct job *job = harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    job->started_ms = 1;
    harness->log = "";
    *state = harness;
    return 0;
}

#define CASE(name, harness) TEST_ON(name, struct harness *harness, start, harness_stop)

static int join(struct harness *harness, const char *query)
{
    _cleanup_free_ char *request = xasprintf("GET /api/v1/jobs/3/terminal%s HTTP/1.1\r\n" UPGRADE, query);
    int fd = client_connect(harness);
    assert_true(client_send(harness, fd, request, strlen(request)));
    _cleanup_free_ char *head = client_read_until(harness, fd, "\r\n\r\n");
    assert_non_null(strstr(head, "HTTP/1.1 101 Switching Protocols\r\n"));
    assert_non_null(strstr(head, "Upgrade: mgpu-terminal\r\n"));
    return fd;
}

/* Waits until the node's end has received these bytes. */
static void assert_agent_gets(struct harness *harness, const char *bytes)
{
    char got[256] = "";
    size_t length = 0;
    for (int i = 0; i < 400 && length < strlen(bytes); i++) {
        harness_turn(harness, 5);
        ssize_t n = recv(harness->agent_fd, got + length, sizeof(got) - 1 - length, MSG_DONTWAIT);
        length += n > 0 ? (size_t)n : 0;
    }
    assert_string_equal(got, bytes);
}

CASE(bytes_pass_both_ways_unread, harness)
{
    _cleanup_close_ int fd = join(harness, "?rows=40&columns=120&position=77");
    assert_int_equal(harness->terminal.rows, 40);
    assert_int_equal(harness->terminal.columns, 120);
    assert_int_equal(harness->terminal.position, 77);
    assert_int_equal(harness->terminal.is_read_only, 0);
    assert_true(client_send(harness, fd, "GET / HTTP/1.1\r\n\r\n", 18));
    assert_agent_gets(harness, "GET / HTTP/1.1\r\n\r\n");
    assert_int_equal(send(harness->agent_fd, "back", 4, MSG_NOSIGNAL), 4);
    free(client_read_until(harness, fd, "back"));
}

CASE(what_came_with_the_request_is_passed_on, harness)
{
    static const char request[] = "GET /api/v1/jobs/3/terminal HTTP/1.1\r\n" UPGRADE "early";
    _cleanup_close_ int fd = client_connect(harness);
    assert_true(client_send(harness, fd, request, strlen(request)));
    free(client_read_until(harness, fd, "\r\n\r\n"));
    assert_agent_gets(harness, "early");
    assert_true(harness->terminal.position == TERMINAL_LAST_SCREEN);
}

CASE(the_end_of_one_side_is_that_of_the_other, harness)
{
    char byte;
    int fd = join(harness, "");
    assert_int_equal(send(harness->agent_fd, "last", 4, MSG_NOSIGNAL), 4);
    (void)close(harness->agent_fd);
    harness->agent_fd = -1;
    free(client_read_until(harness, fd, "last"));
    assert_true(client_is_closed(harness, fd));
    close(fd);
    fd = join(harness, "");
    close(fd);
    for (int i = 0; i < 400 && recv(harness->agent_fd, &byte, 1, MSG_DONTWAIT) != 0; i++)
        harness_turn(harness, 5);
    assert_int_equal(recv(harness->agent_fd, &byte, 1, MSG_DONTWAIT), 0);
}

/* More than mgpud holds waits in the socket when the node's end goes and takes no more of the client's bytes.
 */
CASE(last_words_arrive_though_the_node_takes_no_more, harness)
{
    static char block[65536];
    _cleanup_close_ int fd = join(harness, "");
    size_t sent = 0, got = 0;
    for (int idle = 0; idle < 20;) {
        ssize_t n = send(harness->agent_fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        harness_turn(harness, 2);
    }
    (void)close(harness->agent_fd);
    harness->agent_fd = -1;
    assert_true(client_send(harness, fd, "typed", 5));
    for (int i = 0; i < 20; i++)
        harness_turn(harness, 2);
    ssize_t n = -1;
    for (int i = 0; i < 4000 && n != 0; i++) {
        n = recv(fd, block, sizeof(block), MSG_DONTWAIT);
        got += n > 0 ? (size_t)n : 0;
        harness_turn(harness, 1);
    }
    assert_int_equal(got, sent);
}

CASE(a_client_that_does_not_read_makes_the_node_wait, harness)
{
    harness->is_log_large = true;
    _cleanup_close_ int fd = join(harness, "");
    uint64_t before;
    do { // until nothing moves any more
        before = harness->agent_sent;
        for (int i = 0; i < 20; i++)
            harness_turn(harness, 5);
    } while (harness->agent_sent != before);
    assert_true(harness->agent_sent > LIMIT_STREAM_BUFFER_BYTES);
    assert_true(harness->agent_sent < LIMIT_STREAM_BUFFER_BYTES + (2U << 20)); // and what sockets hold
    struct answer answer = client_get(harness, "/healthz");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
    for (int i = 0; i < 100 && harness->agent_sent == before; i++)
        free(client_read_until(harness, fd, "xxxx"));
    assert_true(harness->agent_sent > before);
}

CASE(a_node_that_does_not_read_makes_the_client_wait, harness)
{
    static char block[65536];
    _cleanup_close_ int fd = join(harness, "");
    size_t sent = 0;
    for (int idle = 0; idle < 20;) {
        ssize_t n = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        harness_turn(harness, 2);
        assert_true(sent < LIMIT_STREAM_BUFFER_BYTES + (4U << 20));
    }
    size_t got = 0;
    for (int i = 0; i < 4000 && got < sent; i++) {
        ssize_t n = recv(harness->agent_fd, block, sizeof(block), MSG_DONTWAIT);
        got += n > 0 ? (size_t)n : 0;
        harness_turn(harness, 1);
    }
    assert_int_equal(got, sent);
}

CASE(who_may_not_join_gets_a_plain_answer, harness)
{
    (void)harness_add_job(harness, 4, getuid(), JOB_QUEUED);
    (void)harness_add_job(harness, 5, getuid(), JOB_DONE);
    struct job *strange = harness_add_job(harness, 6, getuid() + 1, JOB_RUNNING);
    strange->started_ms = 1;
    static const struct {
        const char *request;
        unsigned status;
        const char *code;
    } cases[] = {
        { "GET /api/v1/jobs/3/terminal HTTP/1.1\r\nHost: x\r\n\r\n", 400, "invalid" },
        { "GET /api/v1/jobs/3/terminal HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: "
          "websocket\r\n\r\n",
            400, "invalid" },
        { "GET /api/v1/jobs/3/terminal HTTP/1.0\r\nUpgrade: mgpu-terminal\r\nConnection: Upgrade\r\n\r\n",
            400, "invalid" },
        { "GET /api/v1/jobs/3/terminal?rows=70000 HTTP/1.1\r\n" UPGRADE, 400, "invalid" },
        { "GET /api/v1/jobs/4/terminal HTTP/1.1\r\n" UPGRADE, 409, "not_running" },
        { "GET /api/v1/jobs/5/terminal HTTP/1.1\r\n" UPGRADE, 409, "already_done" },
        { "GET /api/v1/jobs/6/terminal HTTP/1.1\r\n" UPGRADE, 403, "not_allowed" },
        { "GET /api/v1/jobs/7/terminal HTTP/1.1\r\n" UPGRADE, 404, "not_found" },
        { "POST /api/v1/jobs/3/exec HTTP/1.1\r\n" UPGRADE, 400, "invalid" },
        { "POST /api/v1/jobs/6/exec HTTP/1.1\r\nContent-Length: 18\r\nHost: x\r\nConnection: Upgrade\r\n"
          "Upgrade: mgpu-terminal\r\n\r\n{\"command\":[\"id\"]}",
            403, "not_allowed" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answer answer = client_ask(harness, cases[i].request);
        if (answer.status != cases[i].status)
            fail_msg("%s: %u %s", cases[i].request, answer.status, answer.body);
        assert_string_equal(answer_string(&answer, "code"), cases[i].code);
        answer_clear(&answer);
    }
}

CASE(a_node_that_cannot_join_says_why, harness)
{
    harness->log_error = ENOTTY;
    struct answer answer = client_ask(harness, "GET /api/v1/jobs/3/terminal HTTP/1.1\r\n" UPGRADE);
    assert_int_equal(answer.status, 409);
    assert_string_equal(answer_string(&answer, "code"), "no_terminal");
    answer_clear(&answer);
    harness->is_log_mute = true;
    answer = client_ask(harness, "GET /api/v1/jobs/3/terminal HTTP/1.1\r\n" UPGRADE);
    assert_int_equal(answer.status, 503);
    answer_clear(&answer);
}

CASE(one_user_may_not_hold_all_terminals, harness)
{
    int fds[LIMIT_USER_TERMINALS];
    harness->keeps_streams = true;
    for (size_t i = 0; i < LIMIT_USER_TERMINALS; i++)
        fds[i] = join(harness, "");
    struct answer answer = client_ask(harness, "GET /api/v1/jobs/3/terminal HTTP/1.1\r\n" UPGRADE);
    assert_int_equal(answer.status, 429);
    answer_clear(&answer);
    close(fds[0]);
    for (int i = 0; i < 20; i++)
        harness_turn(harness, 5);
    fds[0] = join(harness, "");
    for (size_t i = 0; i < LIMIT_USER_TERMINALS; i++)
        close(fds[i]);
}
