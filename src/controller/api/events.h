/* SPDX-License-Identifier: MIT */
/* The readers of /events. */
#pragma once

#include "controller/http/http_private.h"

/* Passes a durable event on to every reader that has seen all before it. */
void events_publish(struct serve *serve, const struct job_event *event, const struct job *job);

/* A comment line to everybody, so that dead connections are noticed. */
void events_beat(struct serve *serve);
