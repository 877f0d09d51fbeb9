/* SPDX-License-Identifier: MIT */
/*
 * The grammar is http_parser's (the parser that node.js used for a decade). Added here: every limit, before
 * anything is stored; headers that determine the length of the body must not be repeated; bytes after the
 * request are not examined before the answer is sent.
 *
 * Callbacks of http_parser cannot return a reason, so they store it in parser->failure and return non-zero.
 */
#include "controller/http/parser.h"

#include <ctype.h>
#include <errno.h>
#include <http_parser.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "wire/limits.h"

/* What a callback returns to stop the parser. Not 1 or 2: those have their own meaning in on_head. */
#define STOP (-1)

enum part { PART_NONE, PART_NAME, PART_VALUE };

struct parser {
    http_parser http;
    struct http_message message;
    struct buffer target, name, value;
    enum part part;      // the part that was extended last, name or value
    size_t header_bytes; // bytes of request line and headers so far
    bool is_inside;
    bool is_body; // headers are whole
    bool is_whole;
    bool is_waiting; // for "100 Continue"
    struct error failure;
};

const char *http_message_header(const struct http_message *message, const char *name)
{
    for (size_t i = 0; i < message->names.count; i++)
        if (strcmp(message->names.items[i], name) == 0)
            return message->values.items[i];
    return NULL;
}

void http_message_clear(struct http_message *message)
{
    free(message->method);
    free(message->target);
    strings_clear(&message->names);
    strings_clear(&message->values);
    buffer_clear(&message->body);
    *message = (struct http_message){ 0 };
}

static int refuse(struct parser *parser, int code, const char *sentence)
{
    (void)error_set(&parser->failure, code, "%s", sentence);
    return STOP;
}

/* Counts bytes of the head as they arrive, so that an endless line is stopped early. */
static int count_head(struct parser *parser, size_t length)
{
    parser->header_bytes += length;
    if (parser->header_bytes <= LIMIT_HEADER_BYTES)
        return 0;
    (void)error_set(
        &parser->failure, -EMSGSIZE, "request line and headers have more than %d bytes", LIMIT_HEADER_BYTES);
    return STOP;
}

static int on_begin(http_parser *http)
{
    struct parser *parser = http->data;
    parser->is_inside = true;
    return 0;
}

static int on_url(http_parser *http, const char *bytes, size_t length)
{
    struct parser *parser = http->data;
    if (parser->target.length + length > LIMIT_TARGET_BYTES) {
        (void)error_set(
            &parser->failure, -ENAMETOOLONG, "path and query have more than %d bytes", LIMIT_TARGET_BYTES);
        return STOP;
    }
    buffer_append(&parser->target, bytes, length);
    return count_head(parser, length);
}

/* Headers that determine the end of the body or the host: duplicates would make the request ambiguous. */
static bool is_single(const char *name)
{
    static const char *const names[] = { "content-length", "transfer-encoding", "host", "authorization",
        "origin", "range", "expect" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int end_header(struct parser *parser)
{
    if (parser->part == PART_NONE)
        return 0;
    parser->part = PART_NONE;
    char *name = buffer_text(&parser->name);
    for (char *p = name; *p != '\0'; p++) {
        if (*p == ' ')
            return refuse(parser, -EPROTO, "a header name contains a space");
        *p = (char)tolower((unsigned char)*p);
    }
    if (is_single(name) && http_message_header(&parser->message, name) != NULL) {
        (void)error_set(&parser->failure, -EPROTO, "the header %s was sent twice", name);
        return STOP;
    }
    if (parser->message.names.count >= LIMIT_HEADERS) {
        (void)error_set(&parser->failure, -EMSGSIZE, "the request has more than %d headers", LIMIT_HEADERS);
        return STOP;
    }
    strings_add(&parser->message.names, name);
    strings_add(&parser->message.values, buffer_text(&parser->value));
    parser->name.length = parser->value.length = 0;
    return 0;
}

static int on_name(http_parser *http, const char *bytes, size_t length)
{
    struct parser *parser = http->data;
    if (parser->is_body)
        return 0; // a trailer after a chunked body, which is ignored
    if (parser->part == PART_VALUE && end_header(parser) != 0)
        return STOP;
    parser->part = PART_NAME;
    buffer_append(&parser->name, bytes, length);
    return count_head(parser, length);
}

static int on_value(http_parser *http, const char *bytes, size_t length)
{
    struct parser *parser = http->data;
    if (parser->is_body)
        return 0;
    parser->part = PART_VALUE;
    buffer_append(&parser->value, bytes, length);
    return count_head(parser, length);
}

static int too_large(struct parser *parser)
{
    (void)error_set(&parser->failure, -E2BIG, "the body has more than %d bytes", LIMIT_BODY_BYTES);
    return STOP;
}

static int on_head(http_parser *http)
{
    struct parser *parser = http->data;
    struct http_message *message = &parser->message;
    if (end_header(parser) != 0)
        return STOP;
    parser->is_body = true;
    message->method = xstrdup(http_method_str((enum http_method)http->method));
    message->target = xstrdup(buffer_text(&parser->target));
    message->minor = http->http_minor;
    message->is_kept = http_should_keep_alive(http) != 0 && http->upgrade == 0;
    if (http->http_major != 1 || http->http_minor > 1)
        return refuse(parser, -EPROTONOSUPPORT, "only HTTP/1.0 and HTTP/1.1 are supported");
    const char *coding = http_message_header(message, "transfer-encoding");
    const char *length = http_message_header(message, "content-length");
    if (coding != NULL && length != NULL)
        return refuse(parser, -EPROTO, "Content-Length and Transfer-Encoding cannot be combined");
    if (coding != NULL && strcasecmp(coding, "chunked") != 0)
        return refuse(parser, -EPROTO, "the only supported Transfer-Encoding is chunked");
    if (length != NULL && http->content_length > LIMIT_BODY_BYTES)
        return too_large(parser);
    const char *expect = http_message_header(message, "expect");
    if (expect != NULL && strcasecmp(expect, "100-continue") != 0)
        return refuse(parser, -EBADE, "the only supported expectation is 100-continue");
    parser->is_waiting =
        expect != NULL && message->minor >= 1 && (coding != NULL || http->content_length > 0);
    return 0;
}

static int on_body(http_parser *http, const char *bytes, size_t length)
{
    struct parser *parser = http->data;
    if (parser->message.body.length + length > LIMIT_BODY_BYTES)
        return too_large(parser);
    buffer_append(&parser->message.body, bytes, length);
    parser->is_waiting = false;
    return 0;
}

/* A chunk announces its size, so a body that is too large is refused before it is sent. */
static int on_chunk(http_parser *http)
{
    struct parser *parser = http->data;
    if (http->content_length > LIMIT_BODY_BYTES - parser->message.body.length)
        return too_large(parser);
    return 0;
}

static int on_whole(http_parser *http)
{
    struct parser *parser = http->data;
    parser->is_whole = true;
    http_parser_pause(http, 1);
    return 0;
}

static const http_parser_settings settings = {
    .on_message_begin = on_begin,
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_chunk_header = on_chunk,
    .on_message_complete = on_whole,
};

static void begin(struct parser *parser)
{
    http_parser_init(&parser->http, HTTP_REQUEST);
    parser->http.data = parser;
}

struct parser *parser_new(void)
{
    struct parser *parser = xcalloc(1, sizeof(*parser));
    begin(parser);
    return parser;
}

void parser_free(struct parser *parser)
{
    if (parser == NULL)
        return;
    http_message_clear(&parser->message);
    buffer_clear(&parser->target);
    buffer_clear(&parser->name);
    buffer_clear(&parser->value);
    free(parser);
}

static int failure_of(struct parser *parser, struct error *err)
{
    if (parser->failure.code < 0) {
        if (err != NULL)
            *err = parser->failure;
        return parser->failure.code;
    }
    enum http_errno reason = HTTP_PARSER_ERRNO(&parser->http);
    if (reason == HPE_HEADER_OVERFLOW)
        return error_set(err, -EMSGSIZE, "the headers are too large");
    return error_set(err, -EPROTO, "not an HTTP request: %s", http_errno_description(reason));
}

int parser_feed(struct parser *parser, const char *bytes, size_t length, size_t *ret_taken, struct error *err)
{
    size_t taken = http_parser_execute(&parser->http, &settings, bytes, length);
    *ret_taken = taken < length ? taken : length;
    if (parser->is_whole)
        return PARSER_COMPLETE;
    if (HTTP_PARSER_ERRNO(&parser->http) != HPE_OK)
        return failure_of(parser, err);
    if (!parser->is_waiting)
        return PARSER_HUNGRY;
    parser->is_waiting = false;
    return PARSER_CONTINUE;
}

bool parser_is_inside(const struct parser *parser)
{
    return parser->is_inside && !parser->is_whole;
}

size_t parser_body_length(const struct parser *parser)
{
    return parser->message.body.length;
}

void parser_take(struct parser *parser, struct http_message *ret)
{
    *ret = parser->message;
    if (ret->method == NULL)
        ret->method = xstrdup("GET");
    if (ret->target == NULL)
        ret->target = xstrdup("");
    parser->message = (struct http_message){ 0 };
    parser->target.length = parser->name.length = parser->value.length = 0;
    parser->part = PART_NONE;
    parser->header_bytes = 0;
    parser->is_inside = parser->is_body = parser->is_whole = parser->is_waiting = false;
    parser->failure = (struct error){ 0 };
    begin(parser);
}
