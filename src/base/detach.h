/* SPDX-License-Identifier: MIT */
/* --detach: the command returns when the daemon is ready or has failed to start. */
#pragma once

#include "base/error.h"

struct detached {
    int ready_fd; // for detach_ready(); -1 when not detached
    int log_fd;   // standard error is redirected here once ready; -1 when not detached
};

/*
 * Forks. The parent waits for the child's result and exits with it; the child returns in a session of its
 * own. Until detach_ready(), the child's standard error is the user's terminal, so the user sees why a start
 * failed.
 */
int detach_start(const char *log_path, struct detached *ret, struct error *err);

/* Makes the parent return 0 and leaves its terminal: standard input and output become /dev/null, standard
 * error the log. */
void detach_ready(struct detached *detached);

/* Redirects the three standard descriptors of this process away from the terminal. For child processes
 * too. */
void detach_streams(int log_fd);
