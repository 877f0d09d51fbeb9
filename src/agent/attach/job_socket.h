/* SPDX-License-Identifier: MIT */
/*
 * RUN/jobs.sock of a machine that has joined: commands in jobs use mgpud's API through it, as the job's
 * owner, without a token (docs/decisions/0038-commands-in-jobs.md).
 */
#pragma once

#include <event2/event.h>

#include "agent/gpu/usage_watch.h"
#include "agent/host/job_user.h"

struct job_socket;

/* Listens, with a warning if that is impossible. `link_path` is the controller's socket, relative to the
 * working directory, which is the spool. All arguments are borrowed. */
struct job_socket *job_socket_new(struct event_base *base, const char *run_dir, struct usage_watch *watch,
    const char *link_path, const struct job_users *users);

/* Connections continue. NULL is allowed. */
void job_socket_free(struct job_socket *socket);
