/* SPDX-License-Identifier: MIT */
/* A client of GET /events that reconnects after restarts of mgpud. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/api/client.h"

/* Called with the data of each event. */
typedef void feed_event_fn(void *arg, const json_t *event);

struct feed_events {
    struct http_client *http; // NULL: not connected
    struct buffer line;       // the incomplete last line
    feed_event_fn *take;
    void *arg;
};

/* Takes the events out of a part of the stream; `events` is a struct feed_events. -EFBIG: a line has no end.
 */
int feed_events_add(void *events, const void *bytes, size_t length);

/* Subscribes to all events from now on. After a reconnect the caller must query the state of its jobs. */
int feed_events_open(struct feed_events *events, struct client *client, struct error *err);

/* Reads available data; -errno if the connection was lost, which is then closed. */
int feed_events_read(struct feed_events *events, struct error *err);

/* To poll for reading, -1 while disconnected. */
int feed_events_fd(const struct feed_events *events);

void feed_events_close(struct feed_events *events);
