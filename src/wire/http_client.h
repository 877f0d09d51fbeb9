/* SPDX-License-Identifier: MIT */
/* HTTP/1.1 over a unix socket: one connection, one request at a time, answers read as they come. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define HTTP_ANSWER_MAX   (512U << 20) // bytes of a body kept in memory; bodies given to a sink have no limit
#define HTTP_HEADERS_MAX  (64U << 10)
#define HTTP_INTERRUPT_MS 2000

struct http_client;

/* Takes a piece of a 200 or 206 body; a negative errno ends the request with it. */
typedef int (*http_sink_fn)(void *target, const void *bytes, size_t length);

struct http_request {
    const char *method;
    const char *path;   // with the query, already percent-encoded
    const char *header; // one more header line without its line end, or NULL
    const void *body;   // JSON, or NULL
    size_t body_length;
    http_sink_fn sink; // NULL: the body is kept in the answer
    void *sink_target;
};

struct http_answer {
    unsigned status;     // 0 until the head of the answer is read
    int64_t range_start; // position of the body's first byte, told by Content-Range; -1: not told
    struct buffer body;  // what no sink took
    bool is_complete;
};

/* Connects; -errno with a sentence when nobody listens there. */
int http_client_connect(const char *socket_path, struct http_client **ret, struct error *err);

/* The same on a connected socket, which it takes over. */
struct http_client *http_client_adopt(int fd);

/* Sent with every request from now on; copied. NULL: nothing. */
void http_client_authorize(struct http_client *client, const char *token);

/* Makes the value of Authorization for one request; the caller frees *ret. */
typedef int http_authorize_fn(void *arg, const char *method, const char *path, char **ret, struct error *err);

/* Asked before each request from now on, instead of a token. */
void http_client_authorize_each(struct http_client *client, http_authorize_fn *authorize, void *arg);

/* Once `fd` is readable, http_client_request() waits no longer than HTTP_INTERRUPT_MS and then returns
 * -EINTR. Nothing is read from `fd`. */
void http_client_interrupt_by(struct http_client *client, int fd);

/* The socket, to poll for reading. Owned by the client. */
int http_client_fd(const struct http_client *client);

/*
 * Sends a request and forgets the answer before it. A server that answers and closes before it read
 * everything is no failure here: its answer is then to be received.
 */
int http_client_send(struct http_client *client, const struct http_request *request, struct error *err);

/* Reads once from the socket, and blocks for it when nothing is there: 1 when the answer is complete, 0 when
 * more is to come, -ECONNRESET when the connection ended in the middle, or what the sink returned. */
int http_client_receive(struct http_client *client, struct error *err);

/* The answer to the last request as far as it is here; owned by the client and valid until the next send. */
const struct http_answer *http_client_answer(const struct http_client *client);

/* Sends and receives a whole answer; -ETIMEDOUT after `timeout_ms` without a byte (-1: never); -EINTR, see
 * above. */
int http_client_request(
    struct http_client *client, const struct http_request *request, int timeout_ms, struct error *err);

/*
 * Asks to speak another protocol: 1 when the server agreed (101), with what came after its head in `rest`;
 * the socket is the caller's to use then, owned by the client. 0: it answered otherwise. Or a negative errno.
 */
int http_client_upgrade(
    struct http_client *client, const struct http_request *request, struct buffer *rest, struct error *err);

/* True while the server is willing to take one more request on this connection. */
bool http_client_is_reusable(const struct http_client *client);

/* Appends `text` to a path or query with everything but unreserved characters encoded (RFC 3986, 2.3). */
void http_append_encoded(struct buffer *out, const char *text);

void http_client_free(struct http_client *client);
void http_client_freep(struct http_client **client);
