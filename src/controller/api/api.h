/* SPDX-License-Identifier: MIT */
/* The HTTP API: requests become calls of the core, its answers and events go out. */
#pragma once

#include "controller/http/server.h"

struct job;
struct job_event;

/* A server that answers by the table of route.c; it listens nowhere yet. */
struct serve *api_new(struct controller *controller);

/* Sends an event to the clients that follow events, and wakes those who wait for the job. */
void api_publish(struct serve *serve, const struct job_event *event, const struct job *job);

/* The job as GET /jobs shows it, as text that the caller frees; NULL while there is no API. */
char *api_describe(struct serve *serve, const struct job *job);
