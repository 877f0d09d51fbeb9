/* SPDX-License-Identifier: MIT */
/* A listening socket in a loop that outlasts a lack of descriptors. */
#pragma once

#include <event2/event.h>

struct listening;

/* Takes the bound and listening socket over. `on_accept` gets each connection, non-blocking, and owns it.
 * NULL when memory is out or the socket is of no use (errno). */
struct listening *listening_new(
    struct event_base *base, int fd, void (*on_accept)(void *arg, int fd), void *arg);
void listening_stop(struct listening *listening); // accepts no more; the socket stays open
void listening_free(struct listening *listening); // NULL is fine; closes the socket
