/* SPDX-License-Identifier: MIT */
/* Requests that take long to answer: one at a time, users in turn, with room in between for all others. */
#pragma once

#include <event2/event.h>

struct fair_queue;
struct request; // http/request.h

struct fair_queue *fair_queue_new(struct event_base *loop);

/* There must be no open requests any more, or they are forgotten. */
void fair_queue_free(struct fair_queue *queue);

/* Calls `serve` with the request in a later turn of the loop, unless it is over by then. */
void fair_queue_add(struct request *request, void (*serve)(struct request *request));
