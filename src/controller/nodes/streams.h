/* SPDX-License-Identifier: MIT */
/* Second connections: an agent dials RUN/link.sock and names the one-time id that the controller sent it. */
#pragma once

#include <event2/bufferevent.h>
#include <stdint.h>

#include "wire/message.h"

struct controller;
struct streams;

/*
 * The stream has come, with its first frame: `stream` becomes the callee's, reading disabled, bytes after the
 * frame still in its input. On a time-out `stream` and `first` are NULL.
 */
typedef void (*streams_ready_fn)(void *arg, struct bufferevent *stream, const struct message_stream *first);

struct streams *streams_new(struct controller *controller);
void streams_free(struct streams *streams);

/* Starts accepting on a bound and listening unix socket. */
void streams_listen(struct streams *streams, int fd);

/* Takes over a connected socket on which a STREAM frame will come. */
void streams_adopt(struct streams *streams, int fd);

/* Makes a random id and waits for it. The id goes into an OPEN_LOG message. */
uint64_t streams_expect(struct streams *streams, streams_ready_fn on_ready, void *arg);

/* The waiter has gone: on_ready is not called any more. Harmless for an id that is not expected. */
void streams_forget(struct streams *streams, uint64_t id);
