/* SPDX-License-Identifier: MIT */
/* GET /events as it comes, over restarts of mgpud: which job there is news of. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/api/client.h"

/* Told of each event's data. */
typedef void feed_event_fn(void *arg, const json_t *event);

struct feed_events {
    struct http_client *http; // NULL: not connected
    struct buffer line;       // what has come of the line that is not complete
    feed_event_fn *take;
    void *arg;
};

/* Asks for all events from now on. Whoever was away looks at the state of what he knows afterwards. */
int feed_events_open(struct feed_events *events, struct client *client, struct error *err);

/* Reads what is there; -errno when the connection is lost, which is then closed. */
int feed_events_read(struct feed_events *events, struct error *err);

/* To poll for reading, -1 while it is not connected. */
int feed_events_fd(const struct feed_events *events);

void feed_events_close(struct feed_events *events);
