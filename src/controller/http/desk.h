/* SPDX-License-Identifier: MIT */
/* Requests that take long to answer: one at a time, users in turn, with room in between for all others. */
#pragma once

#include <event2/event.h>

struct desk;
struct request; // http/request.h

struct desk *desk_new(struct event_base *loop);

/* There must be no open requests any more, or they are forgotten. */
void desk_free(struct desk *desk);

/* Calls `serve` with the request in a later turn of the loop, unless it is over by then. */
void desk_enter(struct request *request, void (*serve)(struct request *request));
