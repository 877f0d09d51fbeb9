/* SPDX-License-Identifier: MIT */
#include "cli/api/feed_events.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/json/field.h"

#define DATA           "data: "
#define LINE_MAX_      ((size_t)1 << 20)
#define ANSWER_WAIT_MS 10000

static void take_line(struct feed_events *events)
{
    const char *text = buffer_text(&events->line);
    if (strncmp(text, DATA, strlen(DATA)) == 0) {
        _cleanup_json_ json_t *event = json_loads(text + strlen(DATA), 0, NULL);
        if (event != NULL)
            events->take(events->arg, event);
    }
    buffer_clear(&events->line);
}

int feed_events_add(void *target, const void *bytes, size_t length)
{
    struct feed_events *events = target;
    const char *p = bytes, *end = p + length;
    while (p < end) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        buffer_append(&events->line, p, (size_t)((line_end != NULL ? line_end : end) - p));
        if (events->line.length > LINE_MAX_)
            return -EFBIG;
        if (line_end == NULL)
            break;
        take_line(events);
        p = line_end + 1;
    }
    return 0;
}

/* Ctrl-C must work even if mgpud does not respond. */
static int receive_soon(struct feed_events *events, const struct client *client, struct error *err)
{
    struct pollfd wanted = { .fd = http_client_fd(events->http), .events = POLLIN };
    int ready = poll(&wanted, 1, client->answer_ms > 0 ? client->answer_ms : ANSWER_WAIT_MS);
    if (ready == 0)
        return error_set(err, -EAGAIN, "mgpud does not respond");
    return ready < 0 ? 0 : http_client_receive(events->http, err);
}

/* A standby's answer is complete before it names the leader; callers that follow events open them again. */
static int refuse(struct feed_events *events, struct client *client, struct error *err)
{
    int r = 0;
    while (r == 0)
        r = receive_soon(events, client, err);
    (void)client_refer(client, http_client_answer(events->http));
    return client_problem(http_client_answer(events->http), err);
}

int feed_events_open(struct feed_events *events, struct client *client, struct error *err)
{
    const struct http_request request = {
        .method = "GET", .path = API_PATH "/events", .sink = feed_events_add, .sink_target = events
    };
    feed_events_close(events);
    int r = client_connect(client, &events->http, err);
    if (r == 0)
        r = http_client_send(events->http, &request, err);
    /* Before the header of the answer it is unknown with which event the stream begins. */
    while (r == 0 && http_client_answer(events->http)->status == 0)
        r = receive_soon(events, client, err);
    if (r >= 0 && http_client_answer(events->http)->status != 200)
        r = refuse(events, client, err);
    if (r < 0)
        feed_events_close(events);
    return r < 0 ? r : 0;
}

int feed_events_read(struct feed_events *events, struct error *err)
{
    int r = http_client_receive(events->http, err);
    if (r == 0)
        return 0;
    feed_events_close(events);
    return r > 0 ? error_set(err, -ECONNRESET, "mgpud closed the event stream") : r;
}

int feed_events_fd(const struct feed_events *events)
{
    return events->http != NULL ? http_client_fd(events->http) : -1;
}

void feed_events_close(struct feed_events *events)
{
    http_client_free(events->http);
    events->http = NULL;
    buffer_clear(&events->line);
}
