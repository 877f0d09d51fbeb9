/* SPDX-License-Identifier: MIT */
/* The lock that prevents two agents of an instance from running at once, acquired without blocking the event
 * loop. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/error.h"

struct guard;

typedef void guard_taken_fn(void *arg);

/* Opens the lock file below `dirfd` and tries to take the lock: *ret_is_taken tells whether it succeeded;
 * otherwise on_taken() is called when the lock was acquired later. Held until guard_close(). */
int guard_open(struct event_base *base, int dirfd, const char *name, guard_taken_fn *on_taken, void *arg,
    struct guard **ret, bool *ret_is_taken, struct error *err);

void guard_close(struct guard *guard);
