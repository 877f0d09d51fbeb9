/* SPDX-License-Identifier: MIT */
/* A listening socket in an event loop that survives running out of descriptors. */
#pragma once

#include <event2/event.h>

struct listening;

/* Takes ownership of the bound and listening socket. `on_accept` gets each connection, non-blocking, and owns
 * it. NULL (errno) if memory is exhausted or the socket is unusable. */
struct listening *listening_new(
    struct event_base *base, int fd, void (*on_accept)(void *arg, int fd), void *arg);
void listening_stop(struct listening *listening); // stops accepting; the socket stays open
/* The same until listening_resume(); connections wait in the kernel meanwhile. May be called in on_accept. */
void listening_pause(struct listening *listening);
void listening_resume(struct listening *listening);

/* Sets its priority among the events of the loop. May be called in on_accept. */
void listening_set_priority(struct listening *listening, int priority);

void listening_free(struct listening *listening); // NULL is allowed; closes the socket
