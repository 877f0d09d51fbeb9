/* SPDX-License-Identifier: MIT */
/* Takes over a connection: after "101 Switching Protocols", bytes are passed uninterpreted between the client
 * and a node's stream until either side closes. */
#pragma once

#include <event2/bufferevent.h>

#include "controller/http/request.h"

struct relay;

/* Answers 101 and takes ownership of `stream`. The request stays open while the relay exists, which is its
 * `work_relay`; its release must call relay_free(). If the client has left meanwhile, the stream is closed at
 * once. */
void relay_begin(struct request *request, const char *protocol, struct bufferevent *stream);
void relay_free(struct relay *relay);
