/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as requests on one connection. However they are cut into pieces, the requests must be the same,
 * and nothing may exceed its limit.
 */
#include <string.h>

#include "controller/http/guard.h"
#include "controller/http/parser.h"
#include "controller/http/query.h"
#include "controller/http/range.h"
#include "fuzz.h"
#include "wire/limits.h"

static void examine(const struct http_message *message)
{
    struct error err = { 0 };
    struct query query = { 0 };
    struct range range;
    char *path = NULL;
    if (message->body.length > LIMIT_BODY_BYTES || message->names.count > LIMIT_HEADERS)
        abort();
    if (message->names.count != message->values.count || strlen(message->target) > LIMIT_TARGET_BYTES)
        abort();
    (void)guard_check_host(message, "box:1", false, &err);
    (void)guard_check_site(message, false, &err);
    if (range_parse(http_message_header(message, "range"), &range, &err) == 0)
        (void)range_resolve(&range, 1000, &err);
    if (query_parse(message->target, &path, &query, &err) == 0)
        free(path);
    query_clear(&query);
}

/* Feeds pieces of at most `piece` bytes; returns a sum over what came out. */
static uint64_t feed(const uint8_t *bytes, size_t length, size_t piece)
{
    struct parser *parser = parser_new();
    uint64_t sum = 0;
    for (size_t at = 0; at < length;) {
        size_t n = length - at < piece ? length - at : piece, taken = 0;
        struct error err = { 0 };
        int progress = parser_feed(parser, (const char *)bytes + at, n, &taken, &err);
        at += taken;
        if (progress < 0) {
            sum = sum * 31 + 7;
            break;
        }
        if (progress != PARSER_COMPLETE)
            continue;
        struct http_message message;
        parser_take(parser, &message);
        examine(&message);
        sum = sum * 31 + message.body.length + 101 * message.names.count + strlen(message.target);
        http_message_clear(&message);
    }
    parser_free(parser);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0)
        return 0;
    if (feed(bytes, length, length) != feed(bytes, length, 1))
        abort();
    return 0;
}
