/* SPDX-License-Identifier: MIT */
/* The watched processes of spool entries, by entry: thousands of shepherds, of which each start asks for one.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/spool_id.h"

struct watches;

/* It has ended, and is no longer watched. `pid` is the one given to watches_add(). */
typedef void watch_ended_fn(void *arg, const struct spool_id *id, pid_t pid);

struct watches *watches_new(struct event_base *base, watch_ended_fn *on_end, void *arg);
void watches_free(struct watches *watches); // the processes continue; NULL is allowed

/* Takes ownership of the descriptor, which becomes readable at the end (child_watch()). An entry can briefly
 * have two: a shepherd that ends and one that adopts. */
void watches_add(struct watches *watches, const struct spool_id *id, pid_t pid, int end_fd);
bool watches_has(const struct watches *watches, const struct spool_id *id);

/* Stops watching all processes of the entry. */
void watches_drop(struct watches *watches, const struct spool_id *id);
