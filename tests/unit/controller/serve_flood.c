/* SPDX-License-Identifier: MIT */
/* Clients that send more than anybody reads: in no state of a connection do they keep the loop busy, and
 * their leaving is noticed. */

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/http/http_private.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"

#define STUCK_S     60 // a loop that never ends a turn ends the test
#define WAIT_MS     10000
#define TURN_CALLS  200 // turns in which a flood may go on without moving
#define FLOOD_BYTES (12U << 20)

static int start(void **state)
{
    struct harness *harness = harness_new();
    struct job *job = harness_add_job(harness, 3, getuid(), JOB_RUNNING);
    job->started_ms = 1;
    harness->log = "";
    harness->keeps_streams = true;
    (void)alarm(STUCK_S);
    *state = harness;
    return 0;
}

static int stop(void **state)
{
    (void)alarm(0);
    harness_free(*state);
    return 0;
}

#define CASE(name, harness) TEST_ON(name, struct harness *harness, start, stop)

/* A request and what its client sends behind it. */
struct flood {
    const char *name;
    const char *request;
    void (*finish)(struct harness *harness); // what it waits for comes
};

static void close_terminal(struct harness *harness)
{
    (void)close(harness->agent_fd);
    harness->agent_fd = -1;
}

static const struct flood floods[] = {
    { "reading", "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2097152\r\n\r\n", NULL },
    { "answering", "GET /api/v1/jobs/3 HTTP/1.1\r\nHost: localhost\r\n\r\n", harness_release_barriers },
    { "streaming", "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n", NULL },
    { "taken over",
        "GET /api/v1/jobs/3/terminal HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        "Upgrade: mgpu-terminal\r\n\r\n",
        close_terminal },
    { "lingering", "BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", NULL },
};

#define FLOODS (sizeof(floods) / sizeof(floods[0]))

/* Sends until nobody takes any more. */
static void pour(struct harness *harness, int fd)
{
    static char block[65536];
    size_t sent = 0;
    for (int idle = 0; idle < TURN_CALLS && sent < FLOOD_BYTES;) {
        ssize_t n = send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
        harness_turn(harness, 0);
    }
}

static void reset(int fd)
{
    const struct linger at_once = { .l_onoff = 1 };
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    (void)close(fd);
}

static void assert_no_connections(struct harness *harness, const char *name)
{
    int64_t deadline = clock_boot_ms() + WAIT_MS;
    while (harness->controller.serve->connections != NULL && clock_boot_ms() < deadline)
        harness_turn(harness, 5);
    if (harness->controller.serve->connections != NULL)
        fail_msg("%s: the connection stays although its client has left", name);
}

static void assert_others_are_served(struct harness *harness)
{
    _cleanup_(answer_clear) struct answer answer =
        client_post(harness, "/api/v1/jobs", "{\"command\":\"true\"}");
    assert_int_equal(answer.status, 201);
}

static int begin(struct harness *harness, const struct flood *flood, bool is_unix)
{
    int fd = is_unix ? client_connect(harness) : client_connect_tcp(harness);
    harness->is_barrier_held = true;
    assert_true(client_send(harness, fd, flood->request, strlen(flood->request)));
    pour(harness, fd);
    assert_others_are_served(harness);
    return fd;
}

CASE(a_flood_in_any_state_hinders_nobody, harness)
{
    for (size_t i = 0; i < 2 * FLOODS; i++) {
        const struct flood *flood = &floods[i / 2];
        int fd = begin(harness, flood, i % 2 == 0);
        reset(fd);
        assert_no_connections(harness, flood->name);
    }
}

/* Over TCP the end of the stream comes after the unread bytes. */
CASE(a_client_that_closes_or_half_closes_behind_a_flood_is_noticed, harness)
{
    for (size_t i = 0; i < 4 * FLOODS; i++) {
        const struct flood *flood = &floods[i / 4];
        bool is_half = i % 2 == 0, is_unix = i / 2 % 2 == 0;
        int fd = begin(harness, flood, is_unix);
        if (is_half)
            (void)shutdown(fd, SHUT_WR);
        else
            (void)close(fd);
        assert_others_are_served(harness);
        if (flood->finish != NULL)
            flood->finish(harness);
        assert_no_connections(harness, flood->name);
        if (is_half)
            (void)close(fd);
    }
}

/* More requests than mgpud reads ahead, behind one whose answer takes its time; all of them are answered. */
CASE(pipelined_requests_are_answered_though_the_client_sends_no_more, harness)
{
    enum { REQUESTS = 4000 };
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    size_t ends = 0;
    harness->is_barrier_held = true;
    int fd = client_connect(harness);
    assert_true(client_send(harness, fd, floods[1].request, strlen(floods[1].request)));
    while (harness->barriers == 0)
        harness_turn(harness, 1);
    struct buffer all = { 0 };
    for (int i = 0; i < REQUESTS; i++)
        buffer_append_text(&all, request);
    int room = 2 * (int)all.length;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    ssize_t sent = send(fd, all.bytes, all.length, MSG_NOSIGNAL);
    assert_true(sent > 65536);
    buffer_clear(&all);
    (void)shutdown(fd, SHUT_WR);
    harness_release_barriers(harness);
    size_t wanted = (size_t)sent / (sizeof(request) - 1);
    char *text = client_read_until(harness, fd, "HTTP/1.1 400");
    for (const char *at = text; (at = strstr(at, "\r\n\r\nok\n")) != NULL; at++)
        ends++;
    free(text);
    assert_int_equal(ends, wanted);
    (void)close(fd);
    assert_no_connections(harness, "pipelined");
}
