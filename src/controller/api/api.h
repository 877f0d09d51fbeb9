/* SPDX-License-Identifier: MIT */
/* The HTTP API: converts requests to calls of the core, and the core's answers and events to responses. */
#pragma once

#include "controller/http/server.h"

struct job;
struct job_event;

/* Creates a server with the routes of route.c; it does not listen yet. */
struct serve *api_new(struct controller *controller);

/* Connections of commands in jobs, which nodes pass on (nodes/streams.h), are served from here on. */
void api_serve_jobs(struct serve *serve);

/* Sends an event to the clients of /events, and answers those waiting for the job. */
void api_publish(struct serve *serve, const struct job_event *event, const struct job *job);

/* The job in the form of GET /jobs, as text that the caller frees; NULL while there is no API. */
char *api_describe(struct serve *serve, const struct job *job);
