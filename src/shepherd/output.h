/* SPDX-License-Identifier: MIT */
/* The file that a job's output goes to, opened as the user. */
#pragma once

#include <stdbool.h>

#include "shepherd/steps.h"

/*
 * Opens `path` for appending and proves that it is a regular file of ours (or /dev/null). With `is_default`
 * missing directories are made (0700), and a file of that name with text in it, which can only be from
 * another instance, is set aside as NAME.old. Returns the descriptor, or a negative errno and the step.
 */
int output_open(const char *path, bool is_default, enum launch_step *ret_step);
