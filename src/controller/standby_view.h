/* SPDX-License-Identifier: MIT */
/*
 * The answers of a standby, from a snapshot of its copy of the store. A request that finds the snapshot
 * outdated waits until those before it are answered; then the snapshot is replaced.
 */
#pragma once

#include "controller/controller.h"

struct request;
struct standby_view;

struct standby_view *standby_view_new(struct controller *controller, const char *store_dir);

/* Answers a request of the record (route_is_of_record), with its age, or refers to the leader. */
void standby_view_serve(struct standby_view *view, struct request *request);

/* Called periodically: closes a snapshot without recent requests. */
void standby_view_beat(struct standby_view *view);

/* All requests have ended. NULL is allowed. */
void standby_view_free(struct standby_view *view);
