/* SPDX-License-Identifier: MIT */
/*
 * open ── request_reply_* ──────────────> answered ── sent ──> over
 *   └─── request_start_stream ─> streaming ─┘ request_end_stream
 * The client may leave at any time: the request is then over at once.
 */
#include "controller/http/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "controller/turns.h"
#include "wire/json_record.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/problem.h"

struct request *request_new(struct serve *serve, struct connection *connection, struct http_message *message)
{
    struct request *request = xcalloc(1, sizeof(*request));
    request->references = 1;
    request->serve = serve;
    request->connection = connection;
    request->message = *message;
    *message = (struct http_message){ 0 };
    return request;
}

void request_ref(struct request *request)
{
    request->references++;
}

void request_unref(struct request *request)
{
    if (--request->references > 0)
        return;
    http_message_clear(&request->message);
    query_clear(&request->query);
    buffer_clear(&request->headers);
    free(request->path);
    free(request->held);
    free(request);
}

void request_end(struct request *request)
{
    if (request->phase == REQUEST_OVER)
        return;
    request->phase = REQUEST_OVER;
    request->connection = NULL;
    request->on_answer = NULL;
    request->on_drained = NULL;
    request->on_input = NULL;
    if (request->serve->controller->core != NULL) // a standby has none
        core_forget(request->serve->controller->core, request);
    if (request->release != NULL)
        request->release(request);
    request->release = NULL;
}

void request_step(struct request *request, void (*serve)(struct request *request))
{
    int64_t began_us = turns_step_begin();
    serve(request);
    bool has_route = request->label != NULL;
    turns_step_end(request->serve->controller->turns, began_us, has_route ? request->method : "a",
        has_route ? request->label : "refused request");
}

bool request_is_head(const struct request *request)
{
    return strcmp(request->message.method, "HEAD") == 0;
}

bool request_is_over(const struct request *request)
{
    return request->phase == REQUEST_OVER;
}

void request_add_header(struct request *request, const char *name, const char *value)
{
    buffer_printf(&request->headers, "%s: %s\r\n", name, value);
}

static void write_text(struct request *request, const char *text)
{
    connection_write(request->connection, text, strlen(text));
}

/* `length` STREAM_ENDLESS: no length is given. `tag` NULL: the response may not be cached. */
static void write_head(
    struct request *request, unsigned status, const char *content_type, uint64_t length, const char *tag)
{
    _cleanup_buffer_ struct buffer head = { 0 };
    time_t now = time(NULL);
    struct tm parts;
    char date[64];
    (void)gmtime_r(&now, &parts);
    (void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    buffer_printf(&head, "HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Type: %s\r\n", status,
        problem_status_text(status), date, content_type);
    if (length != STREAM_ENDLESS)
        buffer_printf(&head, "Content-Length: %" PRIu64 "\r\n", length);
    else if (request->is_chunked)
        buffer_append_text(&head, "Transfer-Encoding: chunked\r\n");
    if (!request->message.is_kept)
        buffer_append_text(&head, "Connection: close\r\n");
    else if (request->message.minor == 0)
        buffer_append_text(&head, "Connection: keep-alive\r\n");
    if (tag != NULL)
        buffer_printf(&head, "Cache-Control: no-cache\r\nETag: %s\r\n", tag);
    else
        buffer_append_text(&head, "Cache-Control: no-store\r\n");
    buffer_append_text(&head, "X-Content-Type-Options: nosniff\r\n");
    buffer_append(&head, request->headers.bytes, request->headers.length);
    buffer_append_text(&head, "\r\n");
    connection_write(request->connection, head.bytes, head.length);
}

static void finish(struct request *request)
{
    request->phase = REQUEST_ANSWERED;
    connection_finish_answer(request->connection, request->message.is_kept);
}

void request_reply_bytes(
    struct request *request, unsigned status, const char *content_type, const void *bytes, size_t length)
{
    if (request->phase != REQUEST_OPEN)
        return;
    write_head(request, status, content_type, length, NULL);
    if (!request_is_head(request))
        connection_write(request->connection, bytes, length);
    finish(request);
}

void request_reply_file(
    struct request *request, const char *content_type, const char *tag, const void *bytes, size_t length)
{
    const char *known = http_message_header(&request->message, "if-none-match");
    bool is_known = known != NULL && strstr(known, tag) != NULL;
    if (request->phase != REQUEST_OPEN)
        return;
    write_head(request, is_known ? 304 : 200, content_type, length, tag);
    if (!is_known && !request_is_head(request))
        connection_write(request->connection, bytes, length);
    finish(request);
}

/* One line, ended by a line feed, so that it is readable in a terminal. The caller frees it. */
static char *format_line(json_t *body)
{
    _cleanup_free_ char *text = json_text_format(body);
    json_decref(body);
    return xasprintf("%s\n", text);
}

char *request_format_json(json_t *body)
{
    json_t *whole = json_object();
    (void)json_object_set_new(whole, "schema", json_string(SERVE_SCHEMA));
    (void)json_object_update(whole, body);
    json_decref(body);
    return format_line(whole);
}

void request_reply_json(struct request *request, unsigned status, json_t *body)
{
    _cleanup_free_ char *text = request_format_json(body);
    request_reply_bytes(request, status, "application/json", text, strlen(text));
}

void request_reply_problem_with(
    struct request *request, const struct error *err, const char *name, json_t *value)
{
    const struct problem *problem = problem_find(err->code);
    json_t *body = problem_write(err);
    if (value != NULL)
        (void)json_object_set_new(body, name, value);
    _cleanup_free_ char *text = format_line(body);
    if (request->phase == REQUEST_OPEN && problem->status == 401)
        request_add_header(request, "WWW-Authenticate", "Bearer realm=\"mgpu\"");
    if (request->phase == REQUEST_OPEN && problem->status == 429)
        request_add_header(request, "Retry-After", "1");
    request_reply_bytes(request, problem->status, "application/problem+json", text, strlen(text));
}

void request_reply_problem_of(struct request *request, const struct error *err, uint64_t job)
{
    request_reply_problem_with(request, err, "job", job != 0 ? json_integer((json_int_t)job) : NULL);
}

void request_reply_problem(struct request *request, const struct error *err)
{
    request_reply_problem_of(request, err, 0);
}

void request_refuse(struct request *request, const struct error *err)
{
    request->message.is_kept = false;
    request_reply_problem(request, err);
}

static void send_held(struct request *request, const struct core_answer *answer)
{
    if (answer->code < 0) {
        request_reply_problem(request, &answer->err);
        return;
    }
    request_reply_bytes(
        request, request->held_status, "application/json", request->held, strlen(request->held));
}

void request_hold_text(struct request *request, unsigned status, const char *text)
{
    free(request->held);
    request->held = xstrdup(text);
    request->held_status = status;
    request->on_answer = send_held;
    core_barrier(request->serve->controller->core, request);
}

void request_hold_json(struct request *request, unsigned status, json_t *body)
{
    _cleanup_free_ char *text = request_format_json(body);
    request_hold_text(request, status, text);
}

bool request_start_stream(struct request *request, unsigned status, const char *content_type, uint64_t length)
{
    if (request->phase != REQUEST_OPEN)
        return false;
    bool is_endless = length == STREAM_ENDLESS;
    request->is_chunked = is_endless && request->message.minor >= 1;
    if (is_endless && !request->is_chunked)
        request->message.is_kept = false;
    write_head(request, status, content_type, length, NULL);
    if (request_is_head(request) || length == 0) {
        finish(request);
        return false;
    }
    request->phase = REQUEST_STREAMING;
    connection_watch_output(request->connection, LIMIT_STREAM_BUFFER_BYTES / 4);
    return true;
}

void request_stream(struct request *request, const void *bytes, size_t length)
{
    if (request->phase != REQUEST_STREAMING || length == 0)
        return;
    if (request->is_chunked) {
        _cleanup_free_ char *head = xasprintf("%zx\r\n", length);
        write_text(request, head);
    }
    connection_write(request->connection, bytes, length);
    if (request->is_chunked)
        write_text(request, "\r\n");
}

void request_stream_buffer(struct request *request, struct evbuffer *bytes)
{
    size_t length = evbuffer_get_length(bytes);
    if (request->phase != REQUEST_STREAMING || length == 0)
        return;
    if (request->is_chunked) {
        _cleanup_free_ char *head = xasprintf("%zx\r\n", length);
        write_text(request, head);
    }
    connection_write_buffer(request->connection, bytes);
    if (request->is_chunked)
        write_text(request, "\r\n");
}

void request_end_stream(struct request *request)
{
    if (request->phase != REQUEST_STREAMING)
        return;
    if (request->is_chunked)
        write_text(request, "0\r\n\r\n");
    finish(request);
}

void request_break_stream(struct request *request)
{
    if (request->phase != REQUEST_STREAMING)
        return;
    request->message.is_kept = false;
    finish(request);
}

size_t request_room(const struct request *request)
{
    if (request->phase != REQUEST_STREAMING)
        return 0;
    size_t pending = connection_pending(request->connection);
    return pending < LIMIT_STREAM_BUFFER_BYTES ? LIMIT_STREAM_BUFFER_BYTES - pending : 0;
}

int request_parse_body(const struct request *request, json_t **ret, struct error *err)
{
    const struct buffer *body = &request->message.body;
    if (body->length == 0) {
        *ret = json_object();
        return 0;
    }
    json_t *value;
    int r = json_text_parse((const char *)body->bytes, body->length, &value, err);
    if (r < 0)
        return r;
    if (!json_is_object(value)) {
        json_decref(value);
        return error_set(err, -EINVAL, "the body must be a JSON object");
    }
    *ret = value;
    return 0;
}

int request_read_body(
    const struct request *request, const struct record_type *type, void *ret, struct error *err)
{
    _cleanup_json_ json_t *body = NULL;
    int r = request_parse_body(request, &body, err);
    return r == 0 ? json_record_read(type, body, ret, err) : r;
}
