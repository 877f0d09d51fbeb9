/* SPDX-License-Identifier: MIT */
/* The output file of a job, opened as the user. */
#pragma once

#include <stdint.h>

#include "shepherd/steps.h"

enum output_name {
    OUTPUT_NAMED,   // named by the user: if it exists, it is appended to
    OUTPUT_DEFAULT, // named by mgpu after the job's number: an existing file belongs to another instance's
                    // job
    OUTPUT_OWN,     // named like that, and with the attempt's token: an existing file belongs to this attempt
};

/*
 * Opens `path` for appending and verifies that it is a regular file of this user (or /dev/null). Creates
 * missing directories of names chosen by mgpu (0700). Returns the descriptor, or a negative errno and the
 * step; -EEXIST: a log of another instance has this name.
 */
int output_open(const char *path, enum output_name name, enum launch_step *ret_step);

/* The name beside `path`, "7.log", that is unique to this attempt: "7-0badcafe.log". The caller frees it. */
char *output_own_name(const char *path, uint64_t token);
