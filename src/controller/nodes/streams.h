/* SPDX-License-Identifier: MIT */
/*
 * Second connections. An agent connects to RUN/link.sock and sends the one-time id that the controller gave
 * it; the agent of a machine that has joined also connects for commands in jobs (JOB_CLIENT).
 */
#pragma once

#include <event2/bufferevent.h>
#include <stdint.h>

#include "wire/message.h"

struct controller;
struct streams;

/*
 * The stream has arrived, with its first frame: the callee owns `stream`, whose reading is disabled; bytes
 * after the frame are in its input. On a timeout `stream` and `first` are NULL.
 */
typedef void (*streams_ready_fn)(void *arg, struct bufferevent *stream, const struct message_stream *first);

/* A node passes on a connection of a command in a job: the callee owns `stream`, as above. */
typedef void (*streams_client_fn)(
    void *arg, struct bufferevent *stream, const char *node, const struct message_job_client *first);

struct streams *streams_new(struct controller *controller);
void streams_free(struct streams *streams);

/* Starts accepting on a bound and listening unix socket. */
void streams_listen(struct streams *streams, int fd);

/* Sets the receiver of such connections; without one they are closed. */
void streams_set_clients(struct streams *streams, streams_client_fn on_client, void *arg);

/* Takes ownership of a connected socket of this node on which a STREAM or JOB_CLIENT frame will arrive. */
void streams_adopt(struct streams *streams, int fd, const char *node);

/* Creates a random id and waits for it. The id is sent in an OPEN_LOG message. */
uint64_t streams_expect(struct streams *streams, streams_ready_fn on_ready, void *arg);

/* The waiter has left: on_ready is no longer called. No effect for an unknown id. */
void streams_forget(struct streams *streams, uint64_t id);
