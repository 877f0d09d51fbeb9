/* SPDX-License-Identifier: MIT */
/*
 *                  lost                      end of the answer
 * IDLE ──start──> AWAY <────── OPEN ─────────────────────────────> COMPLETE
 *                  └──sent───> ┘
 *
 * Output must never be printed twice or lost, so the only position is `offset`, which is advanced where bytes
 * are passed on. A server that answers 200 to a range request sends the beginning again; those bytes are
 * skipped.
 */
#include "cli/api/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define DELAY_FIRST_MS 20
#define DELAY_MAX_MS   1000

void stream_start(struct stream *stream, struct client *client, const char *path)
{
    char *copy = xstrdup(path);
    /* A connection with a complete answer may be used by the next request, of this stream or another. */
    bool is_spare = stream->state == STREAM_COMPLETE && client->http == NULL && stream->http != NULL &&
                    http_client_is_reusable(stream->http);
    if (is_spare)
        client->http = take_ptr(stream->http);
    http_client_free(stream->http);
    free(stream->path);
    stream->http = NULL;
    stream->client = client;
    stream->path = copy;
    stream->state = STREAM_AWAY;
    stream->lost_ms = stream->retry_ms = 0;
    stream->delay_ms = 0;
}

static int take_bytes(void *target, const void *bytes, size_t length)
{
    struct stream *stream = target;
    const uint8_t *p = bytes;
    if (!stream->is_answered) {
        stream->is_answered = true;
        int64_t start = http_client_answer(stream->http)->range_start;
        bool is_part = http_client_answer(stream->http)->status == 206;
        if (stream->tail > 0 && start >= 0)
            stream->offset = (uint64_t)start; // the server has found the position
        stream->tail = 0;
        if (start >= 0)
            stream->skip = (uint64_t)start < stream->offset ? stream->offset - (uint64_t)start : 0;
        else
            stream->skip = is_part ? 0 : stream->offset;
    }
    size_t skipped = stream->skip < length ? (size_t)stream->skip : length;
    stream->skip -= skipped;
    if (skipped == length)
        return 0;
    int r = stream->sink(stream->sink_target, p + skipped, length - skipped);
    if (r >= 0)
        stream->offset += length - skipped;
    return r;
}

static int ask(struct stream *stream, struct error *err)
{
    http_client_free(stream->http);
    stream->http = NULL;
    /* A connection that stayed open after the last request is reused. */
    if (stream->client->http != NULL && stream->lost_ms == 0)
        stream->http = take_ptr(stream->client->http);
    int r = stream->http == NULL ? client_connect(stream->client, &stream->http, err) : 0;
    if (r < 0)
        return r;
    char range[64] = "";
    if (stream->sink != NULL && stream->offset > 0)
        (void)snprintf(range, sizeof(range), "Range: bytes=%llu-", (unsigned long long)stream->offset);
    else if (stream->sink != NULL && stream->tail > 0)
        (void)snprintf(range, sizeof(range), "Range: bytes=-%llu", (unsigned long long)stream->tail);
    stream->is_answered = false;
    struct http_request request = {
        .method = stream->method == NULL ? "GET" : stream->method,
        .path = stream->path,
        .body = stream->body,
        .body_length = stream->body == NULL ? 0 : strlen(stream->body),
        .header = range[0] == '\0' ? NULL : range,
        .sink = stream->sink == NULL ? NULL : take_bytes,
        .sink_target = stream,
    };
    stream->asked_ms = clock_boot_ms();
    return http_client_send(stream->http, &request, err);
}

/* Plans the next attempt, or gives up if mgpud was unreachable for too long. */
static int plan_retry(struct stream *stream, int code, struct error *err)
{
    int64_t now = clock_boot_ms();
    http_client_free(stream->http);
    stream->http = NULL;
    /* A connection that lasted a second counts as good, even without any data. */
    bool is_new = stream->lost_ms > 0 && stream->asked_ms > stream->lost_ms;
    bool was_well = stream->lost_ms == 0 || (is_new && now - stream->asked_ms > DELAY_MAX_MS);
    if (was_well) {
        stream->lost_ms = now;
        stream->delay_ms = 0;
    }
    if (now - stream->lost_ms >= stream->client->timeout_ms) {
        long long waited_s = stream->client->timeout_ms / 1000;
        if (code == -EAGAIN)
            (void)error_wrap(err, "waited %lld s", waited_s);
        else
            (void)error_wrap(err, "mgpud did not return within %lld s", waited_s);
        return code;
    }
    stream->state = STREAM_AWAY;
    stream->retry_ms = now + stream->delay_ms;
    stream->delay_ms = stream->delay_ms == 0 ? DELAY_FIRST_MS : stream->delay_ms * 2;
    if (stream->delay_ms > DELAY_MAX_MS)
        stream->delay_ms = DELAY_MAX_MS;
    return 0;
}

static bool is_unavailable(const struct stream *stream)
{
    return http_client_answer(stream->http)->status == 503;
}

static int read_once(struct stream *stream, struct error *err)
{
    int r = http_client_receive(stream->http, err);
    if (http_client_answer(stream->http)->status > 0 && !is_unavailable(stream))
        stream->lost_ms = 0;
    if (r > 0 && is_unavailable(stream)) {
        (void)client_refer(stream->client, http_client_answer(stream->http));
        (void)client_problem(http_client_answer(stream->http), err);
        if (stream->on_unavailable != NULL)
            stream->on_unavailable(stream->target);
        return -EAGAIN;
    }
    return r;
}

int stream_advance(struct stream *stream, bool is_readable, struct error *err)
{
    int r = 0;
    if (stream->state == STREAM_COMPLETE)
        return 1;
    if (stream->state == STREAM_AWAY && clock_boot_ms() >= stream->retry_ms) {
        r = ask(stream, err);
        if (r == 0)
            stream->state = STREAM_OPEN;
    } else if (stream->state == STREAM_OPEN && is_readable) {
        r = read_once(stream, err);
        if (r > 0)
            stream->state = STREAM_COMPLETE;
    }
    if (r >= 0)
        return r;
    bool is_first = stream->client->path == NULL;
    return client_is_loss(r) && !is_first ? plan_retry(stream, r, err) : r;
}

bool stream_hurry(struct stream *stream)
{
    if (stream->state != STREAM_AWAY)
        return false;
    stream->retry_ms = clock_boot_ms();
    return true;
}

bool stream_is_awaited(const struct stream *stream)
{
    return stream->state == STREAM_OPEN || (stream->state == STREAM_AWAY && stream->lost_ms == 0);
}

int stream_fd(const struct stream *stream)
{
    return stream->state == STREAM_OPEN ? http_client_fd(stream->http) : -1;
}

int stream_wait_ms(const struct stream *stream)
{
    if (stream->state != STREAM_AWAY)
        return -1;
    int64_t left = stream->retry_ms - clock_boot_ms();
    return left < 0 ? 0 : (int)left;
}

const struct http_answer *stream_answer(const struct stream *stream)
{
    return http_client_answer(stream->http);
}

void stream_clear(struct stream *stream)
{
    http_client_free(stream->http);
    free(stream->path);
    *stream = (struct stream){ 0 };
}
