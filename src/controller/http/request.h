/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer. It is born when its bytes are whole, handed to its route, and ends when its
 * answer has been taken or its client has gone. Whoever waits for the store's answer to it holds a reference.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/core/core.h"
#include "controller/http/connection.h"
#include "controller/http/parser.h"
#include "controller/http/http_private.h"
#include "controller/http/query.h"

struct route; // api/route.h

#define SERVE_NAME_SIZE 129U

enum request_phase {
    REQUEST_OPEN,      // nothing of the answer is written
    REQUEST_STREAMING, // its head and perhaps more is written
    REQUEST_ANSWERED,  // whole; nothing more may be written
    REQUEST_OVER,      // taken by the client, or the client has gone
};

struct request {
    unsigned references;
    enum request_phase phase;
    struct serve *serve;
    struct connection *connection; // NULL when over
    struct http_message message;
    char *path;
    struct query query;
    const struct route *route;
    struct identity who;
    uint64_t job;     // number in the path, when the route has one
    bool has_element; // the path says "42.3": `job` is an array until api/element.c has found the element
    uint32_t element;
    char name[SERVE_NAME_SIZE]; // word in the path, when the route has one
    bool is_vouched;            // by the kernel on the unix socket, or by a token, credential or session
    bool has_session;           // the cookie of the web page told who asks (api/sessions.c)
    bool is_patient;            // waits for something that may take long
    bool is_chunked;            // the stream is sent in chunks
    struct buffer headers;      // further lines of the answer's head

    /* Set by the route's handler. */
    void (*on_answer)(struct request *request, const struct core_answer *answer); // to a call of the core
    void (*on_drained)(struct request *request); // the client has taken what was streamed
    void (*on_input)(struct request *request);   // of a connection that was taken over
    void (*release)(struct request *request);    // once, at the end: stop and free `work`
    void *work;
    struct relay *work_relay; // http/relay.c

    unsigned held_status; // an answer that waits for the barrier
    char *held;
};

/* Takes the message over; the connection holds the first reference. */
struct request *request_new(struct serve *serve, struct connection *connection, struct http_message *message);
void request_ref(struct request *request);
void request_unref(struct request *request);

/* The end: nothing is called any more and what the handler had is released. The reference stays. */
void request_end(struct request *request);

bool request_is_head(const struct request *request);
bool request_is_over(const struct request *request);

/* --- whole answers; each may be given once, later ones are dropped --- */

/* A line for the answer's head; the value must not come from a user. */
void request_add_header(struct request *request, const char *name, const char *value);

/* Takes `body` over and puts "schema" in front. */
void request_reply_json(struct request *request, unsigned status, json_t *body);

/* Status and code follow from err->code. */
void request_reply_problem(struct request *request, const struct error *err);

/* The same, with the job that it is about as `job`; 0: none. */
void request_reply_problem_of(struct request *request, const struct error *err, uint64_t job);

/* As request_reply_problem, and the connection ends afterwards. */
void request_refuse(struct request *request, const struct error *err);

void request_reply_bytes(
    struct request *request, unsigned status, const char *content_type, const void *bytes, size_t length);

/* A file that the client may keep and ask about again: 304 when it has the one with this entity tag. */
void request_reply_file(
    struct request *request, const char *content_type, const char *tag, const void *bytes, size_t length);

/*
 * Formats the answer now and sends it when everything the core has applied so far is durable: nobody reads
 * what a crash could take back.
 */
void request_hold_json(struct request *request, unsigned status, json_t *body);

/* The same in two steps: the text of an answer, which the caller frees, and an answer of such a text. */
char *request_format_json(json_t *body);
void request_hold_text(struct request *request, unsigned status, const char *text);

/* --- streams --- */

#define STREAM_ENDLESS UINT64_MAX

/*
 * Sends the head. `length` STREAM_ENDLESS: sent in chunks. False when the answer is whole with that (HEAD);
 * on_drained is called when no more than a quarter of LIMIT_STREAM_BUFFER_BYTES is pending.
 */
bool request_start_stream(
    struct request *request, unsigned status, const char *content_type, uint64_t length);
void request_stream(struct request *request, const void *bytes, size_t length);

/* The same, with all that is in a buffer, which is moved and not copied. */
void request_stream_buffer(struct request *request, struct evbuffer *bytes);
void request_end_stream(struct request *request);

/* The stream cannot be completed: the client sees it cut off, not ended. */
void request_break_stream(struct request *request);

/* How many more bytes may be streamed before the source has to wait. */
size_t request_room(const struct request *request);

/* The body as a JSON object; an empty body is an empty object. -EINVAL. The caller owns *ret. */
int request_parse_body(const struct request *request, json_t **ret, struct error *err);
