/* SPDX-License-Identifier: MIT */
/* One accepted connection: its identity, its bytes and the request on it. */
#pragma once

#include <event2/buffer.h>
#include <stdbool.h>
#include <stddef.h>

#include "controller/core/core.h"
#include "controller/http/http_private.h"

struct request; // http/request.h

/* Where a connection comes from: a unix socket, TCP of this machine, or another machine, through TLS. */
enum connection_kind { CONNECTION_UNIX, CONNECTION_LOOPBACK, CONNECTION_REMOTE };

/* Takes a fresh descriptor over. Who is at the other end is asked here, once. */
void connection_accept(struct serve *serve, int fd, enum connection_kind kind);

/* Of http/departures.h: the client of a connection that is not read from has left. */
void connection_on_departure(void *arg, bool is_gone);

/* Ends it at once; a request on it is told that its client has gone. */
void connection_close(struct connection *connection);

bool connection_is_unix(const struct connection *connection);
bool connection_is_remote(const struct connection *connection);

/* Whom the kernel names at the other end; unknown on a remote connection. */
const struct identity *connection_peer(const struct connection *connection);

/* A token told whose connection it is: from here on it counts as that user's, where the kernel knew of none.
 * -EMFILE or -EUSERS, as users_take(). */
int connection_count_as(struct connection *connection, uint32_t uid, struct error *err);

struct connection *connection_next(const struct connection *connection);

/* The request that is being answered, or NULL. */
struct request *connection_request(const struct connection *connection);

/* --- for the answer --- */

void connection_write(struct connection *connection, const void *bytes, size_t length);

/* Moves all that is in the buffer. */
void connection_write_buffer(struct connection *connection, struct evbuffer *bytes);

/* Bytes that the client has not taken yet. */
size_t connection_pending(const struct connection *connection);

/* Calls request_drained() when no more than `low` bytes are pending, each time something was taken. */
void connection_watch_output(struct connection *connection, size_t low);

/* The answer may wait for its reader as long as it likes (a log that is followed in a pager). */
void connection_be_patient(struct connection *connection);

/* The answer is whole: the next request follows when it is taken, or the end when not `is_kept`. */
void connection_finish_answer(struct connection *connection, bool is_kept);

/* Tries to send what is pending now, and not in the next turn of the loop. */
void connection_flush(struct connection *connection);

/* --- a connection that speaks something else from here on (http/relay.c) --- */

/* No more requests: what comes goes to request->on_input, and the client's leaving is the end. */
void connection_take_over(struct connection *connection);

/* Bytes that came, and those that are on their way out. */
struct evbuffer *connection_input(struct connection *connection);
struct evbuffer *connection_output(struct connection *connection);

/* Stops or resumes reading. That the client leaves meanwhile is noticed all the same. */
void connection_hold_input(struct connection *connection, bool is_held);

/* --- identities by token, so that the store is not asked for each request --- */

struct token_memory {
    bool is_valid;
    uint64_t id; // of the latest token that was used here
    uint8_t hash[32];
    struct identity who;
    int64_t until_ms;   // until then the store is not asked again; on the boot clock
    int64_t expires_ms; // on the wall clock
};
struct token_memory *connection_token(struct connection *connection);
