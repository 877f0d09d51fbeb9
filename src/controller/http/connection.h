/* SPDX-License-Identifier: MIT */
/* An accepted connection: its identity, its buffers and the request on it. */
#pragma once

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdbool.h>
#include <stddef.h>

#include "controller/core/core.h"
#include "controller/http/http_private.h"
#include "wire/message.h"

struct request; // http/request.h

/* The origin of a connection: a unix socket, TCP from this machine, TLS from another machine, or a command in
 * a job on a machine that has joined. */
enum connection_kind { CONNECTION_UNIX, CONNECTION_LOOPBACK, CONNECTION_REMOTE, CONNECTION_JOB };

/* A node's report about a connection that it forwards: each request checks with the core whether the attempt
 * runs there (identity/job_access.h). */
struct job_peer {
    char *node;
    struct message_job_client client;
};

/* Takes ownership of a new descriptor. The peer is identified here, once. */
void connection_accept(struct serve *serve, int fd, enum connection_kind kind);

/* For http/departures.h: the client of a connection that is not being read has left. */
void connection_on_departure(void *arg, bool is_gone);

/* True if the client has closed the connection, so that it cannot learn of anything done for it. For a client
 * of TCP, whose end cannot be distinguished from the end of its request, this is unknown. */
bool connection_has_left(const struct connection *connection);

/* Closes it at once; a request on it is notified that its client has left. */
void connection_close(struct connection *connection);

/* The same with a connection that a node has passed on, and of which bytes may have been received. */
void connection_accept_job(struct serve *serve, struct bufferevent *stream, const char *node,
    const struct message_job_client *client);

bool connection_is_unix(const struct connection *connection);
bool connection_is_remote(const struct connection *connection);

/* NULL: it is not from a job. */
const struct job_peer *connection_job(const struct connection *connection);

/* The peer according to the kernel; unknown on a remote connection. */
const struct identity *connection_peer(const struct connection *connection);

/* A token has identified the user: the connection counts against that user from here on, if the kernel did
 * not identify one. -EMFILE or -EUSERS, as for users_take(). */
int connection_count_as(struct connection *connection, uint32_t uid, struct error *err);

struct connection *connection_next(const struct connection *connection);

/* The request being answered, or NULL. */
struct request *connection_request(const struct connection *connection);

/* --- writing the answer --- */

void connection_write(struct connection *connection, const void *bytes, size_t length);

/* Moves the contents of the buffer. */
void connection_write_buffer(struct connection *connection, struct evbuffer *bytes);

/* Bytes not yet sent to the client. */
size_t connection_pending(const struct connection *connection);

/* Calls the request's on_drained whenever bytes were sent and at most `low` are pending. */
void connection_watch_output(struct connection *connection, size_t low);

/* The answer may wait for its reader without a timeout (a log followed in a pager). */
void connection_disable_timeouts(struct connection *connection);

/* The answer is complete: when it has been sent, the next request follows, or the end if not `is_kept`. */
void connection_finish_answer(struct connection *connection, bool is_kept);

/* Tries to send pending data now, instead of in the next turn of the loop. */
void connection_flush(struct connection *connection);

/* --- taking over a connection for another protocol (http/relay.c) --- */

/* No more requests: input goes to request->on_input, and the end of the connection ends the request. */
void connection_take_over(struct connection *connection);

/* Received bytes, and bytes to be sent. */
struct evbuffer *connection_input(struct connection *connection);
struct evbuffer *connection_output(struct connection *connection);

/* Stops or resumes reading. A client that leaves meanwhile is still noticed. */
void connection_hold_input(struct connection *connection, bool is_held);

/* --- cached identity of a token, so that not every request queries the store --- */

struct token_memory {
    bool is_valid;
    uint64_t id; // of the last token used here
    uint8_t hash[32];
    struct identity who;
    int64_t until_ms;   // until then the store is not queried again; on the boot clock
    int64_t expires_ms; // on the wall clock
};
struct token_memory *connection_token(struct connection *connection);
