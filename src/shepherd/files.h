/* SPDX-License-Identifier: MIT */
/* Enters the job's working directory and opens its first files, as the user. */
#pragma once

#include <stddef.h>

#include "shepherd/init.h"
#include "shepherd/steps.h"

/* The directory and files that were opened. */
struct place {
    int cwd_error; // positive: why the directory is cwd_fallback
    size_t log;    // index of the log's name among those possible
    int error_fd;  // standard error; -1: the same as the log
    int input_fd;  // standard input; -1: unchanged
};

/*
 * Enters the directory and opens the files, one after the other. Missing ones are retried until the time of
 * the spec (files_ms) is up. Returns the descriptor of the log; or a negative errno, with the step that
 * failed. Exits if the shepherd has ended.
 */
int files_open(const struct init *init, struct place *place, enum launch_step *ret_step);
