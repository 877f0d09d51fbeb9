/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the answer of mgpud, or of another machine that says it is one, to a client: status line,
 * headers, chunks, events. However they come in pieces, a whole answer is the same; what a sink gets is the
 * body of a good answer, an event is an object between two ends of line, and an error has a sentence. After
 * an upgrade nothing is lost.
 *
 * The first byte chooses the pieces, the second what is asked.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "cli/api/feed_events.h"
#include "fuzz.h"
#include "wire/http_client.h"

#define ANSWER_SIZE 60000U // fits in a socket

enum { ASK_BODY, ASK_SINK, ASK_EVENTS, ASK_UPGRADE, ASKS };

static int take_body(void *target, const void *bytes, size_t length)
{
    buffer_append(target, bytes, length);
    return 0;
}

static void take_event(void *arg, const json_t *event)
{
    uint32_t *sum = arg;
    char *text = json_dumps(event, JSON_COMPACT);
    must_be(json_is_object(event) || json_is_array(event));
    *sum = crc32c(*sum, text, strlen(text));
    free(text);
}

static uint32_t sum_answer(const struct http_answer *answer)
{
    must_be(answer->range_start >= -1 && answer->age_ms >= -1 && answer->status < 1000);
    must_be(memchr(answer->controllers, '\0', sizeof(answer->controllers)) != NULL);
    must_be(answer->controllers[strcspn(answer->controllers, "\r\n")] == '\0');
    uint32_t sum = crc32c(answer->status, answer->body.bytes, answer->body.length);
    sum = crc32c(sum, answer->controllers, strlen(answer->controllers));
    return sum * 31 + (uint32_t)answer->range_start * 7 + (uint32_t)answer->age_ms * 5 + answer->is_complete;
}

/* An answer that is an error has a sentence, and refers only to where a client may go. */
static void read_problem(const struct http_answer *answer)
{
    struct client client = { 0 };
    struct error err = { 0 };
    must_be(client_problem(answer, &err) < 0 && err.message[0] != '\0');
    must_be(client_refer(&client, answer) == (client.leader != NULL));
    must_be(client.leader == NULL || (answer->status == 503 && strncmp(client.leader, "http", 4) == 0));
    client_clear(&client);
}

static struct http_client *connect_pair(int *ret_server)
{
    int fds[2];
    must_be(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    *ret_server = fds[1];
    return http_client_adopt(fds[0]);
}

static uint32_t ask(const uint8_t *bytes, size_t length, size_t piece, int what)
{
    int server = -1, r = 0;
    struct buffer body = { 0 };
    struct error err = { 0 };
    uint32_t events = 0;
    struct feed_events feed = { .take = take_event, .arg = &events };
    struct http_client *client = connect_pair(&server);
    struct http_request request = { .method = "GET", .path = "/" };
    if (what == ASK_SINK)
        request.sink = take_body, request.sink_target = &body;
    if (what == ASK_EVENTS)
        request.sink = feed_events_add, request.sink_target = &feed;
    must_be(http_client_send(client, &request, &err) == 0);
    for (size_t at = 0; at < length && r == 0;) {
        size_t n = length - at < piece ? length - at : piece;
        must_be(send(server, bytes + at, n, MSG_NOSIGNAL) == (ssize_t)n);
        at += n;
        r = http_client_receive(client, &err);
    }
    (void)shutdown(server, SHUT_WR);
    if (r == 0)
        r = http_client_receive(client, &err);
    const struct http_answer *answer = http_client_answer(client);
    must_be(r != 0 && answer->is_complete == (r > 0) && (r > 0 || err.message[0] != '\0'));
    must_be(body.length == 0 || answer->status == 200 || answer->status == 206);
    /* Of an answer that breaks off, nobody knows how much of its last piece counted. */
    if (r > 0 && (answer->status < 200 || answer->status > 299))
        read_problem(answer);
    uint32_t sum = sum_answer(answer) * 31 + http_client_is_reusable(client);
    sum = r < 0 ? (uint32_t)r : crc32c(sum, body.bytes, body.length) + events;
    buffer_clear(&body);
    feed_events_close(&feed);
    http_client_free(client);
    (void)close(server);
    return sum;
}

static void upgrade(const uint8_t *bytes, size_t length)
{
    int server = -1;
    struct buffer rest = { 0 };
    struct error err = { 0 };
    struct http_client *client = connect_pair(&server);
    const struct http_request request = { .method = "POST", .path = "/" };
    must_be(send(server, bytes, length, MSG_NOSIGNAL) == (ssize_t)length && shutdown(server, SHUT_WR) == 0);
    int r = http_client_upgrade(client, &request, &rest, &err);
    if (r == 1) {
        must_be(http_client_answer(client)->status == 101 && rest.length < length);
        must_be(rest.length == 0 || memcmp(bytes + length - rest.length, rest.bytes, rest.length) == 0);
    } else {
        must_be(
            rest.length == 0 && (r < 0 ? err.message[0] != '\0' : http_client_answer(client)->is_complete));
    }
    buffer_clear(&rest);
    http_client_free(client);
    (void)close(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length < 3 || length > ANSWER_SIZE)
        return 0;
    size_t piece = (size_t)bytes[0] + 1;
    int what = bytes[1] % ASKS;
    bytes += 2, length -= 2;
    if (what == ASK_UPGRADE)
        upgrade(bytes, length);
    else if (length / piece < 2048)
        must_be(ask(bytes, length, ANSWER_SIZE, what) == ask(bytes, length, piece, what));
    return 0;
}
