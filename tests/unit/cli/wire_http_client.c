/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "server.h"
#include "unit_test.h"
#include "wire/http_client.h"

#define SIGNALS_MAX 1000 // then the server hangs up, so that the test ends

struct fixture {
    struct server server;
    struct http_client *client;
    int peer; // the server's end of the connection
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    server_open(&fixture->server);
    assert_int_equal(http_client_connect(fixture->server.path, &fixture->client, NULL), 0);
    fixture->peer = server_accept(&fixture->server);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    http_client_free(fixture->client);
    if (fixture->peer >= 0)
        (void)close(fixture->peer);
    server_close(&fixture->server);
    free(fixture);
    return 0;
}

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, setup, teardown)

CASE(a_request_carries_its_body_and_length, fixture)
{
    char heard[1024];
    struct http_request request = { .method = "POST", .path = "/x", .body = "{}", .body_length = 2 };
    assert_int_equal(http_client_send(fixture->client, &request, NULL), 0);
    server_receive(fixture->peer, heard, sizeof(heard));
    assert_memory_equal(heard, "POST /x HTTP/1.1\r\nHost: ", 24);
    assert_non_null(strstr(heard, "\r\nContent-Length: 2\r\n"));
    assert_non_null(strstr(heard, "\r\n\r\n{}"));
}

CASE(an_answer_may_arrive_in_pieces, fixture)
{
    struct http_request request = { .method = "GET", .path = "/" };
    assert_int_equal(http_client_send(fixture->client, &request, NULL), 0);
    server_say(fixture->peer, "HTTP/1.1 20");
    assert_int_equal(http_client_receive(fixture->client, NULL), 0);
    server_say(fixture->peer, "1 Created\r\nContent-Length: 4\r\nContent-Ra");
    assert_int_equal(http_client_receive(fixture->client, NULL), 0);
    server_say(fixture->peer, "nge: bytes 7");
    assert_int_equal(http_client_receive(fixture->client, NULL), 0);
    server_say(fixture->peer, "0-73/100\r\n\r\nab");
    assert_int_equal(http_client_receive(fixture->client, NULL), 0);
    assert_int_equal(http_client_answer(fixture->client)->status, 201);
    server_say(fixture->peer, "cd");
    assert_int_equal(http_client_receive(fixture->client, NULL), 1);
    assert_int_equal(http_client_answer(fixture->client)->range_start, 70);
    assert_memory_equal(http_client_answer(fixture->client)->body.bytes, "abcd", 4);
    assert_true(http_client_is_reusable(fixture->client));
}

CASE(one_connection_serves_several_requests, fixture)
{
    struct http_request request = { .method = "GET", .path = "/" };
    for (int i = 0; i < 3; i++) {
        server_say(fixture->peer, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
        assert_int_equal(http_client_request(fixture->client, &request, 1000, NULL), 0);
        assert_int_equal(http_client_answer(fixture->client)->body.length, 1);
    }
}

CASE(a_connection_that_ends_early_is_a_loss, fixture)
{
    struct http_request request = { .method = "GET", .path = "/" };
    assert_int_equal(http_client_send(fixture->client, &request, NULL), 0);
    server_say(fixture->peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    assert_int_equal(http_client_receive(fixture->client, NULL), 0);
    (void)shutdown(fixture->peer, SHUT_WR);
    assert_int_equal(http_client_receive(fixture->client, NULL), -ECONNRESET);
    assert_false(http_client_is_reusable(fixture->client));
}

CASE(a_body_without_length_ends_with_the_connection, fixture)
{
    struct http_request request = { .method = "GET", .path = "/" };
    assert_int_equal(http_client_send(fixture->client, &request, NULL), 0);
    server_say(fixture->peer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall");
    assert_int_equal(http_client_receive(fixture->client, NULL), 0);
    (void)shutdown(fixture->peer, SHUT_WR);
    assert_int_equal(http_client_receive(fixture->client, NULL), 1);
    assert_false(http_client_is_reusable(fixture->client));
}

CASE(junk_is_refused, fixture)
{
    struct error err = { 0 };
    struct http_request request = { .method = "GET", .path = "/" };
    server_say(fixture->peer, "SSH-2.0-OpenSSH_9.2\r\n");
    assert_int_equal(http_client_request(fixture->client, &request, 1000, &err), -EBADMSG);
    assert_non_null(strstr(err.message, "not HTTP"));
}

/* A text that is read as far as its NUL would depend on where the bytes were cut. */
CASE(a_nul_in_a_header_is_refused, fixture)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nX-Mgpu-Controllers: \0a:1\r\nContent-Length: 0\r\n\r\n";
    struct http_request request = { .method = "GET", .path = "/" };
    struct error err = { 0 };
    assert_int_equal(http_client_send(fixture->client, &request, NULL), 0);
    assert_int_equal(write(fixture->peer, answer, sizeof(answer) - 1), (ssize_t)sizeof(answer) - 1);
    assert_int_equal(http_client_receive(fixture->client, &err), -EBADMSG);
}

CASE(another_protocol_that_was_not_asked_for_is_refused, fixture)
{
    struct error err = { 0 };
    struct http_request request = { .method = "GET", .path = "/" };
    server_say(fixture->peer, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: mgpu\r\n\r\n");
    assert_int_equal(http_client_request(fixture->client, &request, 1000, &err), -EBADMSG);
    assert_non_null(strstr(err.message, "another protocol"));
}

CASE(endless_headers_are_refused, fixture)
{
    struct http_request request = { .method = "GET", .path = "/" };
    char line[1024];
    int r = http_client_send(fixture->client, &request, NULL);
    memset(line, 'a', sizeof(line));
    memcpy(line, "h:", 2);
    memcpy(line + sizeof(line) - 3, "\r\n", 3);
    server_say(fixture->peer, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; r == 0 && i < 200; i++) {
        server_say(fixture->peer, line);
        r = http_client_receive(fixture->client, NULL);
    }
    assert_int_equal(r, -EBADMSG);
}

static int take(void *target, const void *bytes, size_t length)
{
    buffer_append(target, bytes, length);
    return ((const char *)bytes)[0] == '!' ? -ECANCELED : 0;
}

CASE(a_sink_gets_good_bodies_alone, fixture)
{
    _cleanup_buffer_ struct buffer taken = { 0 };
    struct http_request request = { .method = "GET", .path = "/", .sink = take, .sink_target = &taken };
    server_say(fixture->peer, "HTTP/1.1 206 Partial\r\nContent-Length: 3\r\n\r\nlog");
    assert_int_equal(http_client_request(fixture->client, &request, 1000, NULL), 0);
    assert_int_equal(taken.length, 3);
    server_say(fixture->peer, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}");
    assert_int_equal(http_client_request(fixture->client, &request, 1000, NULL), 0);
    assert_int_equal(taken.length, 3);
    assert_int_equal(http_client_answer(fixture->client)->body.length, 2);
    server_say(fixture->peer, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n!");
    assert_int_equal(http_client_request(fixture->client, &request, 1000, NULL), -ECANCELED);
}

CASE(a_silent_server_is_given_up, fixture)
{
    struct http_request request = { .method = "GET", .path = "/" };
    assert_int_equal(http_client_request(fixture->client, &request, 20, NULL), -ETIMEDOUT);
}

static int hung_up_fd;

static void on_alarm(int number)
{
    static int count;
    if (++count == SIGNALS_MAX)
        (void)shutdown(hung_up_fd, SHUT_RDWR);
}

CASE(signals_do_not_lengthen_the_wait_for_a_silent_server, fixture)
{
    struct http_request request = { .method = "GET", .path = "/" };
    const struct itimerval often = { { .tv_usec = 5000 }, { .tv_usec = 5000 } }, never = { 0 };
    hung_up_fd = fixture->peer;
    (void)signal(SIGALRM, on_alarm);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    int r = http_client_request(fixture->client, &request, 100, NULL);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    (void)signal(SIGALRM, SIG_DFL);
    assert_int_equal(r, -ETIMEDOUT);
}

TEST(nobody_listening_is_told_with_the_path)
{
    struct http_client *client = NULL;
    struct error err = { 0 };
    assert_int_equal(http_client_connect("/nonexistent/s", &client, &err), -ENOENT);
    assert_non_null(strstr(err.message, "/nonexistent/s"));
    assert_null(client);
}

TEST(queries_are_percent_encoded)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    http_append_encoded(&out, "a b&\xc3\xa9~");
    assert_string_equal(buffer_text(&out), "a%20b%26%C3%A9~");
}
