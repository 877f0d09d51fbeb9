/* SPDX-License-Identifier: MIT */
/* Detects that a client has left while its connection is not being read. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

struct departures;

/* `is_gone`: the connection is dead in both directions; otherwise the client has stopped sending but may
 * still read. May be called with false and later with true. */
typedef void (*departures_fn)(void *arg, bool is_gone);

struct departures *departures_new(struct event_base *loop, departures_fn on_departure);
void departures_free(struct departures *departures);

/* Watches a socket until departures_forget(); `arg` is passed to the callback. */
void departures_watch(struct departures *departures, int fd, void *arg);
void departures_forget(struct departures *departures, int fd);
