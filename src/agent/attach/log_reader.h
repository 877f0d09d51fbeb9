/* SPDX-License-Identifier: MIT */
/* The process that reads one log as the job's user and sends it to the controller. */
#pragma once

#include <stdbool.h>

#include "agent/host/job_user.h"
#include "wire/message.h"

/* Connects to the controller and serves the request; returns the exit status of the process, which has
 * changed its identity permanently. `is_too_many`: only reports that the node is reading its maximum number
 * of logs. */
int log_reader_dial(const char *link_path, const struct job_users *users,
    const struct message_open_log *request, bool is_too_many);

/* The same on a connected socket. */
int log_reader_serve(int socket_fd, const struct job_users *users, const struct message_open_log *request);
