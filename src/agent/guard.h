/* SPDX-License-Identifier: MIT */
/* The lock that keeps two agents of one instance from acting at once, waited for without blocking the loop.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/error.h"

struct guard;

typedef void guard_taken_fn(void *arg);

/* Opens the lock file below `dirfd` and takes the lock: *ret_is_taken tells whether it is ours already, else
 * on_taken() is called when its holder has gone. The lock is held until guard_close(). */
int guard_open(struct event_base *base, int dirfd, const char *name, guard_taken_fn *on_taken, void *arg,
    struct guard **ret, bool *ret_is_taken, struct error *err);

void guard_close(struct guard *guard);
