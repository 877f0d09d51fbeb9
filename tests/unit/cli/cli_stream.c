/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>

#include "cli/api/stream.h"
#include "server.h"
#include "unit_test.h"

struct fixture {
    struct server server;
    struct client client;
    struct stream stream;
    struct buffer taken;
    char heard[1024];
};

static int take(void *target, const void *bytes, size_t length)
{
    buffer_append(target, bytes, length);
    return 0;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    server_open(&fixture->server);
    fixture->client = (struct client){ .asked_path = fixture->server.path, .timeout_ms = 5000 };
    stream_start(&fixture->stream, &fixture->client, "/log");
    fixture->stream.sink = take;
    fixture->stream.sink_target = &fixture->taken;
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    stream_clear(&fixture->stream);
    client_clear(&fixture->client);
    buffer_clear(&fixture->taken);
    server_close(&fixture->server);
    free(fixture);
    return 0;
}

#define CASE(name, fixture) TEST_ON(name, struct fixture *fixture, setup, teardown)

/* Advances until the stream waits for its server, and takes the connection. */
static int answer(struct fixture *fixture, const char *text)
{
    while (fixture->stream.state == STREAM_AWAY) {
        (void)poll(NULL, 0, stream_wait_ms(&fixture->stream));
        assert_int_equal(stream_advance(&fixture->stream, false, NULL), 0);
    }
    int fd = server_accept(&fixture->server);
    server_receive(fd, fixture->heard, sizeof(fixture->heard));
    server_say(fd, text);
    return fd;
}

CASE(a_lost_log_goes_on_at_its_byte, fixture)
{
    int fd = answer(fixture, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    assert_null(strstr(fixture->heard, "Range:"));
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 0);
    (void)close(fd);
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 0);
    fd = answer(fixture, "HTTP/1.1 206 Partial\r\nContent-Range: bytes 3-4/5\r\nContent-Length: 2\r\n\r\nde");
    assert_non_null(strstr(fixture->heard, "Range: bytes=3-\r\n"));
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 1);
    assert_string_equal(buffer_text(&fixture->taken), "abcde");
    (void)close(fd);
}

CASE(a_log_can_begin_near_its_end_and_goes_on_at_its_byte, fixture)
{
    fixture->stream.tail = 4;
    int fd = answer(fixture, "HTTP/1.1 206 Partial\r\nContent-Range: bytes 96-999/*\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    assert_non_null(strstr(fixture->heard, "Range: bytes=-4\r\n"));
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 0);
    assert_int_equal(fixture->stream.offset, 98);
    (void)close(fd);
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 0);
    fd = answer(
        fixture, "HTTP/1.1 206 Partial\r\nContent-Range: bytes 98-99/100\r\nContent-Length: 2\r\n\r\ncd");
    assert_non_null(strstr(fixture->heard, "Range: bytes=98-\r\n"));
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 1);
    assert_string_equal(buffer_text(&fixture->taken), "abcd");
    (void)close(fd);
}

CASE(a_server_that_ignores_ranges_repeats_nothing, fixture)
{
    fixture->stream.offset = 4;
    int fd = answer(fixture, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef");
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 1);
    assert_string_equal(buffer_text(&fixture->taken), "ef");
    (void)close(fd);
}

CASE(a_server_that_is_not_ready_is_asked_again, fixture)
{
    int fd = answer(fixture, "HTTP/1.1 503 Unavailable\r\nContent-Length: 2\r\n\r\n{}");
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 0);
    assert_int_equal(fixture->stream.state, STREAM_AWAY);
    (void)close(fd);
    fd = answer(fixture, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    assert_int_equal(stream_advance(&fixture->stream, true, NULL), 1);
    assert_string_equal(buffer_text(&fixture->taken), "x");
    (void)close(fd);
}

CASE(a_server_that_stays_away_is_given_up, fixture)
{
    struct error err = { 0 };
    int fd = answer(fixture, "");
    server_leave(&fixture->server);
    (void)close(fd);
    fixture->client.timeout_ms = 50;
    int r = 0;
    for (int i = 0; r == 0 && i < 100; i++) {
        int wait_ms = stream_wait_ms(&fixture->stream);
        (void)poll(NULL, 0, wait_ms < 0 ? 0 : wait_ms);
        r = stream_advance(&fixture->stream, true, &err);
    }
    assert_int_equal(r, -EHOSTDOWN);
    assert_non_null(strstr(err.message, "did not return"));
}

CASE(a_server_that_never_was_there_fails_at_once, fixture)
{
    struct error err = { 0 };
    server_leave(&fixture->server);
    assert_int_equal(stream_advance(&fixture->stream, false, &err), -EHOSTDOWN);
}
