/* SPDX-License-Identifier: MIT */
/*
 * A request and its answer. It is created when its bytes are complete, passed to its route, and ends when its
 * answer has been sent or its client has left. Code that waits for an answer of the store holds a reference.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/core/core.h"
#include "controller/http/connection.h"
#include "controller/http/http_private.h"
#include "controller/http/parser.h"
#include "controller/http/query.h"

struct route; // api/route.h

#define SERVE_NAME_SIZE 129U

enum request_phase {
    REQUEST_OPEN,      // nothing of the answer has been written
    REQUEST_STREAMING, // the header, perhaps more, has been written
    REQUEST_ANSWERED,  // complete; nothing more may be written
    REQUEST_OVER,      // the answer was sent, or the client has left
};

struct request {
    unsigned references;
    enum request_phase phase;
    struct serve *serve;
    struct connection *connection; // NULL when REQUEST_OVER
    struct http_message message;
    char *path;
    struct query query;
    const struct route *route;
    const char *method, *label; // of the route, for the durations of turns; NULL: none yet
    struct identity who;
    uint64_t job;     // the number in the path, if the route has one
    bool has_element; // the path has the form "42.3": `job` is an array until api/element.c has found the
                      // element
    uint32_t element;
    char name[SERVE_NAME_SIZE]; // the name in the path, if the route has one
    bool is_vouched;            // by the kernel on the unix socket, or by a token, credential or session
    bool has_session;           // identified by the cookie of the web page (api/sessions.c)
    bool is_patient;            // waits for something that may take long
    bool is_chunked;            // the body is sent in chunks
    struct buffer headers;      // additional header lines of the answer

    /* Set by the route's handler. */
    void (*on_answer)(struct request *request, const struct core_answer *answer); // the core has answered
    void (*on_drained)(struct request *request); // streamed data has been sent
    void (*on_input)(struct request *request);   // input of a connection that was taken over
    void (*release)(struct request *request);    // once, at the end: stop and free `work`
    void *work;
    struct relay *work_relay; // http/relay.c

    unsigned held_status; // of an answer that waits for the barrier
    char *held;
};

/* Takes ownership of the message; the connection holds the first reference. */
struct request *request_new(struct serve *serve, struct connection *connection, struct http_message *message);
void request_ref(struct request *request);
void request_unref(struct request *request);

/* Ends it: no more callbacks, and the handler's work is released. The reference is kept. */
void request_end(struct request *request);

/* Calls `serve` with it as a part of a turn that has the name of its route (controller/turns.h). */
void request_step(struct request *request, void (*serve)(struct request *request));

bool request_is_head(const struct request *request);
bool request_is_over(const struct request *request);

/* --- complete answers; only the first is sent, later ones are dropped --- */

/* Adds a header line to the answer; the value must not come from a user. */
void request_add_header(struct request *request, const char *name, const char *value);

/* Takes ownership of `body` and inserts "schema" as its first key. */
void request_reply_json(struct request *request, unsigned status, json_t *body);

/* Status and code are derived from err->code. */
void request_reply_problem(struct request *request, const struct error *err);

/* The same, with the job concerned as `job`; 0: none. */
void request_reply_problem_of(struct request *request, const struct error *err, uint64_t job);

/* The same, with another member; takes ownership of its value. */
void request_reply_problem_with(
    struct request *request, const struct error *err, const char *name, json_t *value);

/* Like request_reply_problem, and closes the connection afterwards. */
void request_refuse(struct request *request, const struct error *err);

void request_reply_bytes(
    struct request *request, unsigned status, const char *content_type, const void *bytes, size_t length);

/* A file that the client may keep and ask about again: 304 when it has the one with this entity tag. */
void request_reply_file(
    struct request *request, const char *content_type, const char *tag, const void *bytes, size_t length);

/*
 * Formats the answer now and sends it when everything the core has applied so far is durable, so that a
 * client never sees a change that a crash could undo.
 */
void request_hold_json(struct request *request, unsigned status, json_t *body);

/* The same in two steps: the text of an answer, which the caller frees, and an answer with such a text. */
char *request_format_json(json_t *body);
void request_hold_text(struct request *request, unsigned status, const char *text);

/* --- streams --- */

#define STREAM_ENDLESS UINT64_MAX

/*
 * Sends the header. `length` STREAM_ENDLESS: the body is sent in chunks. False if the answer is already
 * complete (HEAD). on_drained is called when at most a quarter of LIMIT_STREAM_BUFFER_BYTES is pending.
 */
bool request_start_stream(
    struct request *request, unsigned status, const char *content_type, uint64_t length);
void request_stream(struct request *request, const void *bytes, size_t length);

/* The same, with the contents of a buffer, which are moved, not copied. */
void request_stream_buffer(struct request *request, struct evbuffer *bytes);
void request_end_stream(struct request *request);

/* The stream cannot be completed: the client sees a truncated response, not a regular end. */
void request_break_stream(struct request *request);

/* How many more bytes may be streamed before the source must wait. */
size_t request_room(const struct request *request);

/* The body as a JSON object; an empty body is an empty object. -EINVAL. The caller owns *ret. */
int request_parse_body(const struct request *request, json_t **ret, struct error *err);

/* The body as a record, like json_record_read(). */
int request_read_body(
    const struct request *request, const struct record_type *type, void *ret, struct error *err);
