/* SPDX-License-Identifier: MIT */
/* Answers OPEN_LOG: each log is read by a child process that runs as the job's user and connects to the
 * controller itself. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "agent/host/job_user.h"
#include "wire/message.h"

/* At a time; more are answered with an error. The processes run as the user, who can stop them. */
#define LOG_STREAMS_MAX      256U
#define LOG_STREAMS_USER_MAX 64U // of these

struct log_streams;

/* `link_path` is the controller's socket, relative to the working directory; `users` is borrowed. */
struct log_streams *log_streams_new(
    struct event_base *base, const char *link_path, const struct job_users *users);
void log_streams_open(struct log_streams *streams, const struct message_open_log *request);
void log_streams_free(struct log_streams *streams);
