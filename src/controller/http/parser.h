/* SPDX-License-Identifier: MIT */
/* Parses the bytes of a connection into HTTP/1.x requests, one at a time, within the limits of
 * wire/limits.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/strings.h"

/* A request as received. Header names are in lower case. */
struct http_message {
    char *method;
    char *target; // path and query, as sent
    struct strings names, values;
    struct buffer body;
    unsigned minor; // of HTTP/1.minor
    bool is_kept;   // the client wants to keep the connection open
};

/* The value of a header that occurs once, or NULL. `name` in lower case. */
const char *http_message_header(const struct http_message *message, const char *name);
void http_message_clear(struct http_message *message);

struct parser;

struct parser *parser_new(void);
void parser_free(struct parser *parser);

enum parser_progress {
    PARSER_HUNGRY,   // everything was consumed; the request is incomplete
    PARSER_CONTINUE, // the same, and the client waits for "100 Continue" before it sends the body
    PARSER_COMPLETE, // the request is complete; following bytes were not consumed
};

/*
 * Consumes bytes; *ret_taken says how many. Returns enum parser_progress or a negative errno with a sentence;
 * the connection is then unusable. -EPROTO: not HTTP; -E2BIG, -ENAMETOOLONG, -EMSGSIZE: over a limit;
 * -EPROTONOSUPPORT: another version; -EBADE: an unsupported expectation.
 */
int parser_feed(
    struct parser *parser, const char *bytes, size_t length, size_t *ret_taken, struct error *err);

/* True if a request has begun and is incomplete. */
bool parser_is_inside(const struct parser *parser);

/* Bytes of the body so far. */
size_t parser_body_length(const struct parser *parser);

/* Returns the request (also an incomplete one, so that it can be refused) and resets the parser. */
void parser_take(struct parser *parser, struct http_message *ret);
