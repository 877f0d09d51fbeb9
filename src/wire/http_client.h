/* SPDX-License-Identifier: MIT */
/* HTTP/1.1 client over a unix socket: one connection, one request at a time, answers processed as they
 * arrive. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define HTTP_ANSWER_MAX      (512U << 20) // bytes of a body kept in memory; bodies passed to a sink are unlimited
#define HTTP_HEADERS_MAX     (64U << 10)
#define HTTP_INTERRUPT_MS    2000
#define HTTP_CONTROLLERS_MAX 2048

struct http_client;

/* Receives a part of a 200 or 206 body; a negative errno ends the request with it. */
typedef int (*http_sink_fn)(void *target, const void *bytes, size_t length);

struct http_request {
    const char *method;
    const char *path;   // with the query, already percent-encoded
    const char *header; // an additional header line without line end, or NULL
    const void *body;   // JSON, or NULL
    size_t body_length;
    http_sink_fn sink; // NULL: the body is kept in the answer
    void *sink_target;
};

struct http_answer {
    unsigned status;     // 0 until the header of the answer has been read
    int64_t range_start; // position of the body's first byte, from Content-Range; -1: none
    int64_t age_ms;      // X-Mgpu-Age: a standby answered, from data of this age; -1: the leader answered
    char controllers[HTTP_CONTROLLERS_MAX]; // X-Mgpu-Controllers: "HOST:PORT,..."; empty: none
    struct buffer body;                     // the body, unless passed to a sink
    bool is_complete;
};

/* Connects; -errno with a sentence if no process listens there. */
int http_client_connect(const char *socket_path, struct http_client **ret, struct error *err);

/* The same for a connected socket; takes ownership of it. */
struct http_client *http_client_adopt(int fd);

/* Sent with every further request; copied. NULL: none. */
void http_client_authorize(struct http_client *client, const char *token);

/* Creates the value of Authorization for one request; the caller frees *ret. */
typedef int http_authorize_fn(void *arg, const char *method, const char *path, char **ret, struct error *err);

/* Called before each further request, instead of a token. */
void http_client_authorize_each(struct http_client *client, http_authorize_fn *authorize, void *arg);

/* Once `fd` is readable, http_client_request() waits no longer than HTTP_INTERRUPT_MS and then returns
 * -EINTR. Nothing is read from `fd`. */
void http_client_interrupt_by(struct http_client *client, int fd);

/* The socket, to poll for reading. Owned by the client. */
int http_client_fd(const struct http_client *client);

/*
 * Sends a request and discards the previous answer. If the server answers and closes before it has read
 * everything, this is not a failure: its answer can be received.
 */
int http_client_send(struct http_client *client, const struct http_request *request, struct error *err);

/* Reads once from the socket, blocking if there is no data: 1 if the answer is complete, 0 if more follows,
 * -ECONNRESET if the connection ended early, or the sink's error. */
int http_client_receive(struct http_client *client, struct error *err);

/* The answer to the last request as received so far; owned by the client, valid until the next send. */
const struct http_answer *http_client_answer(const struct http_client *client);

/* Sends and receives a whole answer; -ETIMEDOUT after `timeout_ms` without a byte (-1: never); -EINTR, see
 * above. */
int http_client_request(
    struct http_client *client, const struct http_request *request, int timeout_ms, struct error *err);

/*
 * Requests a protocol upgrade: 1 if the server agreed (101), with the data after the header in `rest`; the
 * caller may then use the socket, which the client still owns. 0: another answer. Else a negative errno.
 */
int http_client_upgrade(
    struct http_client *client, const struct http_request *request, struct buffer *rest, struct error *err);

/* True if the server accepts another request on this connection. */
bool http_client_is_reusable(const struct http_client *client);

/* Appends `text` to a path or query, percent-encoding all but unreserved characters (RFC 3986, 2.3). */
void http_append_encoded(struct buffer *out, const char *text);

void http_client_free(struct http_client *client);
void http_client_freep(struct http_client **client);
