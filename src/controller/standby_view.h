/* SPDX-License-Identifier: MIT */
/*
 * What a standby answers: the core and the store of its controller, as its copy of the store was at one
 * moment. A request that finds them old waits until those before it are answered; then both are replaced.
 */
#pragma once

#include "controller/controller.h"

struct request;
struct standby_view;

struct standby_view *standby_view_new(struct controller *controller, const char *store_dir);

/* Answers a request of the record (route_is_of_record), with its age, or refers to the leader. */
void standby_view_serve(struct standby_view *view, struct request *request);

/* Now and then: closes what nobody has asked for lately. */
void standby_view_beat(struct standby_view *view);

/* All requests have ended. NULL is allowed. */
void standby_view_free(struct standby_view *view);
