/* SPDX-License-Identifier: MIT */
/* Notices that a client has left although nobody reads from its connection. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

struct departures;

/* `is_gone`: the connection is dead in both directions; else the client sends no more and may still read. It
 * may be called with false and later with true. */
typedef void (*departures_fn)(void *arg, bool is_gone);

struct departures *departures_new(struct event_base *loop, departures_fn on_departure);
void departures_free(struct departures *departures);

/* Watches a socket until departures_forget(); `arg` is for the callback. */
void departures_watch(struct departures *departures, int fd, void *arg);
void departures_forget(struct departures *departures, int fd);
