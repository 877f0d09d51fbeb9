/* SPDX-License-Identifier: MIT */
/* --detach: the command returns when the daemon is ready, or with its failure. */
#pragma once

#include "base/error.h"

struct detached {
    int ready_fd; // for detach_ready(); -1 when not detached
    int log_fd;   // where standard error goes from then on; -1 when not detached
};

/*
 * Forks; the parent waits here for the child's word and exits with it. The child returns with its own
 * session. Until it is ready its standard error is the user's terminal, so that a failed start is seen where
 * it was typed.
 */
int detach_start(const char *log_path, struct detached *ret, struct error *err);

/* Lets the parent return 0, and leaves its terminal: standard input and output are /dev/null, standard error
 * the log. */
void detach_ready(struct detached *detached);

/* Points the three standard descriptors of this process away from the terminal; for children too. */
void detach_streams(int log_fd);
