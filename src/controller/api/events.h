/* SPDX-License-Identifier: MIT */
/* The clients of /events. */
#pragma once

#include "controller/http/http_private.h"

/* Sends a durable event to every client that has received all previous ones. */
void events_publish(struct serve *serve, const struct job_event *event, const struct job *job);

/* Sends a comment line to every client, so that dead connections are detected. */
void events_beat(struct serve *serve);
