/* SPDX-License-Identifier: MIT */
/* The working directory of the job and the files it begins with, opened as the user. */
#pragma once

#include <stddef.h>

#include "shepherd/init.h"
#include "shepherd/steps.h"

/* Where the job has come to. */
struct place {
    int cwd_error; // positive: why it is in cwd_fallback
    size_t log;    // which of the names of the log it has
    int error_fd;  // of its standard error; -1: that of its log
    int input_fd;  // of its standard input; -1: as it is
};

/*
 * Enters the directory and opens the files, one after the other. What is missing may be there a moment later:
 * it is tried again until the time of the spec (files_ms) is up. Returns the descriptor of the log; or a
 * negative errno, with the step that failed. Exits when the shepherd has ended.
 */
int files_open(const struct init *init, struct place *place, enum launch_step *ret_step);
