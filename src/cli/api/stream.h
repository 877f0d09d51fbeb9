/* SPDX-License-Identifier: MIT */
/*
 * A long-running request (following a log, waiting) that survives restarts of mgpud: after a lost connection
 * it is sent again, for a log from the current position.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/api/client.h"
#include "wire/http_client.h"

enum stream_state {
    STREAM_IDLE,     // not started
    STREAM_AWAY,     // to be sent at `retry_ms`
    STREAM_OPEN,     // sent; the answer is incomplete
    STREAM_COMPLETE, // the answer is complete
};

struct stream {
    struct client *client;
    char *path;
    const char *method, *body; // NULL: GET, no body; the body is JSON text that outlives the request
    http_sink_fn sink;         // for a log; NULL: the answer is kept
    void *sink_target;
    /* Called whenever the server answers that it cannot serve the request now; the request is repeated later.
     * NULL: not called. */
    void (*on_unavailable)(void *target);
    void *target;
    uint64_t offset; // bytes of the log passed to the sink
    uint64_t tail;   // of a log: begin this many bytes before its end; 0: at `offset`
    enum stream_state state;
    struct http_client *http;
    int64_t asked_ms;          // boot clock: when the request was sent
    int64_t lost_ms, retry_ms; // boot clock; lost_ms is 0 while connected
    int delay_ms;
    uint64_t skip; // bytes of this answer already passed to the sink
    bool is_answered;
};

/* Starts a request for `path`, sent by the next advance. With a sink, the body from `offset` on is passed to
 * it. */
void stream_start(struct stream *stream, struct client *client, const char *path);

/*
 * Does what is due: sends the request, or reads once if the connection is readable. 1 if the answer is
 * complete, 0 if not, a negative errno if mgpud stayed away too long or the sink failed.
 */
int stream_advance(struct stream *stream, bool is_readable, struct error *err);

/* Sends a request that waits for its time at the next advance. False: there is none. */
bool stream_hurry(struct stream *stream);

/* True if the answer is incomplete, or the request has yet to be sent; false if it is repeated because it
 * could not be answered. */
bool stream_is_awaited(const struct stream *stream);

/* The descriptor to poll for reading, -1 if none. */
int stream_fd(const struct stream *stream);

/* Milliseconds until stream_advance has something to do without input, -1 if it only waits for its
 * descriptor. */
int stream_wait_ms(const struct stream *stream);

/* Status and body of a complete answer. */
const struct http_answer *stream_answer(const struct stream *stream);

void stream_clear(struct stream *stream);
