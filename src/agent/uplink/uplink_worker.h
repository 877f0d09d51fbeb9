/* SPDX-License-Identifier: MIT */
/* The worker of a joined node: starts it, restarts it when it dies, and passes it each new link. */
#pragma once

#include <event2/event.h>

#include "agent/host/options.h"
#include "base/error.h"

struct uplink_worker;

/* A new worker waits for a link. */
typedef void uplink_worker_started_fn(void *arg);

/* *ret is always set. `on_started` may be called before this returns. */
int uplink_worker_start(struct event_base *base, const struct agent_options *options, const char *node,
    uplink_worker_started_fn *on_started, void *arg, struct uplink_worker **ret, struct error *err);

/* Lets the worker exit; its jobs continue. NULL is allowed. */
void uplink_worker_free(struct uplink_worker *worker);

/* Passes it a copy of a connected socket on which to send HELLO. */
int uplink_worker_link(struct uplink_worker *worker, int link_fd);
