/* SPDX-License-Identifier: MIT */
/* Answers OPEN_TERMINAL: connects to the controller and passes that connection to the terminal of a step. */
#pragma once

#include "base/spool.h"
#include "base/terminal.h"
#include "wire/message.h"

/* Connects, reports the result, and passes the connection on. `link_path` is the controller's socket,
 * relative to the working directory. */
void terminal_visit_open(int spool_fd, const char *link_path, const struct message_open_terminal *request);

/* --- for exec_steps, whose terminals are created for one visit --- */

/* Connects to the controller without blocking; a descriptor or a negative errno. */
int terminal_visit_dial(const char *link_path);

/* Sends STREAM on it. `err` NULL: success. Returns 0 or a negative errno. */
int terminal_visit_say(int fd, uint64_t stream, const struct error *err);

/* Passes the connection to the terminal of the step. -ENOENT and -ECONNREFUSED: it has none. */
int terminal_visit_bring(int spool_fd, const struct spool_id *id, const struct terminal_visit *visit, int fd);
