/* SPDX-License-Identifier: MIT */
/* Answers OPEN_PORT: each connection to a port of a job is carried by a child process that runs as the job's
 * user in the job's cgroup, and ends with the job. */
#pragma once

#include <event2/event.h>

#include "agent/host/job_user.h"
#include "agent/launch/launcher.h"
#include "wire/message.h"

/* At a time; more are answered with an error. The processes run as the user, who can stop them. */
#define PORT_STREAMS_MAX      1024U
#define PORT_STREAMS_USER_MAX 256U // of these

struct port_streams;

/* `link_path` is the controller's socket, relative to the working directory; it, `launcher` and `users` are
 * borrowed. */
struct port_streams *port_streams_new(struct event_base *base, const struct launcher *launcher,
    const char *link_path, const struct job_users *users);
void port_streams_open(struct port_streams *streams, const struct message_open_port *request);
void port_streams_free(struct port_streams *streams);
