/* SPDX-License-Identifier: MIT */
/* Connection takeover: after "101 Switching Protocols" the bytes of a client and of a node's stream are
 * passed on both ways, unread, until either side closes. */
#pragma once

#include <event2/bufferevent.h>

#include "controller/http/request.h"

struct relay;

/* Answers 101 and takes `stream` over. The request stays open as long as the relay, which is its
 * `work_relay`; its release must call relay_free(). When the client has gone meanwhile the stream is closed
 * at once. */
void relay_begin(struct request *request, const char *protocol, struct bufferevent *stream);
void relay_free(struct relay *relay);
