/* SPDX-License-Identifier: MIT */
/* A queue for expensive requests, and for those of users with many requests: users in turn, others in
 * between. */
#pragma once

#include <event2/event.h>

struct fair_queue;
struct request; // http/request.h

struct fair_queue *fair_queue_new(struct event_base *loop);

/* All requests in it must have ended; any others are dropped. */
void fair_queue_free(struct fair_queue *queue);

/* Calls `serve` with the request in a later turn of the loop, unless it has ended by then. */
void fair_queue_add(struct request *request, void (*serve)(struct request *request));

/* The same for a request that changes state: each user may have only a few of these per commit. */
void fair_queue_add_change(struct request *request, void (*serve)(struct request *request));

/* A commit has ended. */
void fair_queue_resume(struct fair_queue *queue);
