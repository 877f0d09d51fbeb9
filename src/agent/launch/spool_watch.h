/* SPDX-License-Identifier: MIT */
/* The socket in the spool on which shepherds send hints that an attempt has changed. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/spool.h"

struct spool_watch;

/* `is_start`: the only change is that it has started. */
typedef void spool_hint_fn(void *arg, const struct spool_id *id, bool is_start);

/* Creates the socket in the working directory, which is the spool, replacing that of an earlier agent. */
int spool_watch_open(
    struct event_base *base, spool_hint_fn *on_hint, void *arg, struct spool_watch **ret, struct error *err);

void spool_watch_close(struct spool_watch *watch);
