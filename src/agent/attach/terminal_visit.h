/* SPDX-License-Identifier: MIT */
/* Answers OPEN_TERMINAL: dials the controller and gives that connection to the terminal of a step. */
#pragma once

#include "base/spool.h"
#include "base/terminal.h"
#include "wire/message.h"

/* Dials, says what became of it, and brings the two together. `link_path` is the controller's socket,
 * relative to the working directory. */
void terminal_visit_open(int spool_fd, const char *link_path, const struct message_open_terminal *request);

/* --- for exec_steps, whose terminal is made for one visit --- */

/* A connection to the controller, or a negative errno; never waits. */
int terminal_visit_dial(const char *link_path);

/* Says STREAM on it. `err` NULL: all is well. Returns 0 or a negative errno. */
int terminal_visit_say(int fd, uint64_t stream, const struct error *err);

/* Gives the connection to the terminal of the step. -ENOENT and -ECONNREFUSED: there is none. */
int terminal_visit_bring(int spool_fd, const struct spool_id *id, const struct terminal_visit *visit, int fd);
