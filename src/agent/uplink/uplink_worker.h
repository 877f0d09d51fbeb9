/* SPDX-License-Identifier: MIT */
/* The worker of a node that has joined: started, started again when it dies, and given each new link. */
#pragma once

#include <event2/event.h>

#include "agent/host/options.h"
#include "base/error.h"

struct uplink_worker;

/* A fresh worker waits for a link. */
typedef void uplink_worker_started_fn(void *arg);

/* *ret is set in any case. `on_started` is called before this returns, too. */
int uplink_worker_start(struct event_base *base, const struct agent_options *options, const char *node,
    uplink_worker_started_fn *on_started, void *arg, struct uplink_worker **ret, struct error *err);

/* Lets the worker leave; its jobs go on. NULL is fine. */
void uplink_worker_free(struct uplink_worker *worker);

/* Gives it a copy of a connected socket on which to say HELLO. */
int uplink_worker_link(struct uplink_worker *worker, int link_fd);
