/* SPDX-License-Identifier: MIT */
/* Streams of events: from now on, from an earlier one, and for readers that do not keep up. */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

static int listen_to(struct harness *harness, const char *query, const char *header)
{
    _cleanup_free_ char *ask = xasprintf("GET /api/v1/events%s HTTP/1.1\r\nHost: x\r\n%s\r\n", query, header);
    int fd = client_connect(harness);
    assert_true(client_send(harness, fd, ask, strlen(ask)));
    return fd;
}

/* Every "id: N" in the text must follow the one before by one. Returns the last. */
static uint64_t check_sequence(const char *text, uint64_t last)
{
    for (const char *at = text; (at = strstr(at, "\nid: ")) != NULL; at++) {
        uint64_t seq = strtoull(at + 5, NULL, 10);
        assert_int_equal(seq, last + 1);
        last = seq;
    }
    return last;
}

CASE(a_reader_gets_what_happens_from_now_on, harness)
{
    harness_add_event(harness, 1, true);
    _cleanup_close_ int fd = listen_to(harness, "", "");
    char *text = client_read_until(harness, fd, "retry: 2000");
    assert_non_null(strstr(text, "Content-Type: text/event-stream\r\n"));
    assert_null(strstr(text, "id: 1"));
    free(text);
    harness_add_event(harness, 42, true);
    text = client_read_until(harness, fd, "\n\n");
    assert_non_null(strstr(text, "id: 2\nevent: started\ndata: {\"seq\":2,\"type\":\"started\",\"job\":42,"));
    assert_non_null(strstr(text, "\"state\":\"running\"}\n\n"));
    free(text);
}

CASE(a_reader_resumes_without_gap_or_duplicate, harness)
{
    for (uint64_t i = 0; i < 1000; i++)
        harness_add_event(harness, 1, true);
    int fd = listen_to(harness, "?after=100", "");
    for (uint64_t i = 0; i < 300; i++) {
        harness_add_event(harness, 1, true); // while the old ones are still on their way
        if (i % 7 == 0)
            harness_turn(harness, 1);
    }
    char *text = client_read_chunks(harness, fd, "id: 1300\n");
    assert_int_equal(check_sequence(text, 100), 1300);
    free(text);
    close(fd);
    fd = listen_to(harness, "?after=7", "Last-Event-ID: 1290\r\n");
    text = client_read_chunks(harness, fd, "id: 1300\n");
    assert_int_equal(check_sequence(text, 1290), 1300);
    free(text);
    close(fd);
}

CASE(all_events_come_once_and_in_order, harness)
{
    for (uint64_t i = 0; i < 700; i++)
        harness_add_event(harness, 1, true);
    _cleanup_close_ int fd = listen_to(harness, "?after=0", "");
    for (uint64_t i = 0; i < 500; i++) {
        harness_add_event(harness, 1, true);
        if (i % 3 == 0)
            harness_turn(harness, 0);
    }
    _cleanup_free_ char *text = client_read_chunks(harness, fd, "id: 1200\n");
    assert_int_equal(check_sequence(text, 0), 1200);
}

/* Pages are read between commits: with many readers one user could delay those of all others. */
CASE(readers_of_one_user_replay_in_turn, harness)
{
    static const char ask[] = "GET /api/v1/events?after=0 HTTP/1.1\r\nHost: x\r\n\r\n";
    int fds[6];
    for (uint64_t i = 0; i < 700; i++)
        harness_add_event(harness, 1, true);
    for (size_t i = 0; i < 6; i++)
        fds[i] = client_connect(harness);
    for (size_t i = 0; i < 6; i++) // all are there before a page has come
        assert_int_equal(send(fds[i], ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
    for (size_t i = 3; i < 6; i++) // they leave before theirs has
        close(fds[i]);
    for (size_t i = 0; i < 3; i++) {
        char *text = client_read_chunks(harness, fds[i], "id: 700\n");
        assert_int_equal(check_sequence(text, 0), 700);
        free(text);
        close(fds[i]);
    }
    assert_int_equal(harness->pages_most, 1);
    assert_int_equal(harness->pages, 0);
}

CASE(an_event_that_the_store_had_first_is_not_repeated, harness)
{
    harness_add_event(harness, 1, true);
    harness_add_event(harness, 2, false); // durable, not published yet
    _cleanup_close_ int fd = listen_to(harness, "?after=0", "");
    free(client_read_until(harness, fd, "id: 2\n"));
    struct job *job = harness_add_job(harness, 2, 0, JOB_RUNNING);
    harness->core.last_event = 2;
    api_publish(harness->controller.serve, &harness->events[1], job);
    harness_add_event(harness, 3, true);
    _cleanup_free_ char *text = client_read_until(harness, fd, "id: 3\n");
    assert_null(strstr(text, "id: 2\n"));
}

CASE(a_cursor_of_another_store_is_reset, harness)
{
    harness_add_event(harness, 1, true);
    _cleanup_close_ int fd = listen_to(harness, "", "Last-Event-ID: 900\r\n");
    char *text = client_read_until(harness, fd, "event: reset\n");
    assert_non_null(strstr(text, "id: 1\nevent: reset\n"));
    free(text);
    harness_add_event(harness, 1, true);
    text = client_read_until(harness, fd, "id: 2\n");
    assert_non_null(strstr(text, "id: 2\n"));
    free(text);
}

CASE(a_bad_cursor_is_refused, harness)
{
    struct answer answer = client_get(harness, "/api/v1/events?after=x");
    assert_int_equal(answer.status, 400);
    answer_clear(&answer);
    answer = client_ask(harness, "HEAD /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
}

CASE(a_reader_that_does_not_read_is_disconnected, harness)
{
    int fd = listen_to(harness, "", "");
    free(client_read_until(harness, fd, "retry"));
    struct job *job = harness_add_job(harness, 2, 0, JOB_RUNNING);
    struct job_event event = { .job = 2, .type = EVENT_STARTED, .wall_ms = 1 };
    for (uint64_t i = 1; i <= 20000; i++) {
        event.seq = i;
        api_publish(harness->controller.serve, &event, job);
        if (i % 100 == 0)
            harness_turn(harness, 0);
    }
    assert_true(client_is_closed(harness, fd));
    close(fd);
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/healthz");
    assert_int_equal(answer.status, 200);
}

CASE(a_reader_that_left_is_dropped, harness)
{
    int fds[3];
    for (size_t i = 0; i < 3; i++) {
        fds[i] = listen_to(harness, "", "");
        free(client_read_until(harness, fds[i], "retry"));
    }
    close(fds[1]);
    for (int i = 0; i < 5; i++)
        harness_turn(harness, 1);
    harness_add_event(harness, 1, true);
    for (size_t i = 0; i < 3; i += 2) {
        free(client_read_until(harness, fds[i], "id: 1\n"));
        close(fds[i]);
    }
}
