/* SPDX-License-Identifier: MIT */
/*
 * A request whose answer takes long (a log that is followed, a wait), carried through restarts of mgpud: when
 * its connection is lost it is asked again, a log from the byte it had come to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/api/client.h"
#include "wire/http_client.h"

enum stream_state {
    STREAM_IDLE,     // not asked for
    STREAM_AWAY,     // to be asked at `retry_ms`
    STREAM_OPEN,     // asked; the answer has not ended
    STREAM_COMPLETE, // the whole answer is here
};

struct stream {
    struct client *client;
    char *path;
    const char *method, *body; // NULL: GET, and none; the body is JSON text that outlives the request
    http_sink_fn sink;         // of a log; NULL: the answer is kept
    void *sink_target;
    uint64_t offset; // bytes of the log that the sink has taken
    uint64_t tail;   // of a log: begin so many bytes before its end; 0: at `offset`
    enum stream_state state;
    struct http_client *http;
    int64_t asked_ms;          // boot clock: when the request was sent
    int64_t lost_ms, retry_ms; // boot clock; lost_ms is 0 while all is well
    int delay_ms;
    uint64_t skip; // bytes of this answer that the sink had before
    bool is_answered;
};

/* Begins to ask for `path` at the next advance. With a sink the body goes there, from `offset` on. */
void stream_start(struct stream *stream, struct client *client, const char *path);

/*
 * Does what is due: asks, or reads once when the connection is readable. 1 when the answer is complete, 0
 * when it goes on, a negative errno when mgpud stayed away too long or the sink failed.
 */
int stream_advance(struct stream *stream, bool is_readable, struct error *err);

/* The descriptor to poll for reading, -1 while there is none. */
int stream_fd(const struct stream *stream);

/* Milliseconds until stream_advance has something to do by itself, -1 when only its descriptor can tell. */
int stream_wait_ms(const struct stream *stream);

/* Status and body of a complete answer. */
const struct http_answer *stream_answer(const struct stream *stream);

void stream_clear(struct stream *stream);
