/* SPDX-License-Identifier: MIT */
/* Steps of running jobs: the clients that run them. */
#pragma once

#include "controller/http/http_private.h"

struct job_event;

/* Ends the responses of the steps that this durable event ends. */
void steps_publish(struct serve *serve, const struct job_event *event);
