/* SPDX-License-Identifier: MIT */
/* The file that a job's output goes to, opened as the user. */
#pragma once

#include <stdint.h>

#include "shepherd/steps.h"

enum output_name {
    OUTPUT_NAMED,   // by the user: may be there, and is appended to
    OUTPUT_DEFAULT, // by mgpu, from the job's number: what is there belongs to a job of another instance
    OUTPUT_OWN,     // likewise, from the attempt's token too: what is there is this attempt's
};

/*
 * Opens `path` for appending and proves that it is a regular file of ours (or /dev/null). Missing directories
 * of names by mgpu are made (0700). Returns the descriptor, or a negative errno and the step; -EEXIST:
 * another instance's log has this name.
 */
int output_open(const char *path, enum output_name name, enum launch_step *ret_step);

/* The name beside `path`, "7.log", that only this attempt has: "7-0badcafe.log". The caller frees it. */
char *output_own_name(const char *path, uint64_t token);
