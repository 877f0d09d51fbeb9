/* SPDX-License-Identifier: MIT */
/* The last lines of output of a failed command, which usually explain the failure and are added to its
 * record. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "job/launch.h"

#define TAIL_SIZE (USAGE_TAIL_MAX + 1U)

/*
 * Reads the last whole lines written to `log_fd` after the offset `start`, as the user who owns it. Returns
 * the length of `text`; 0 if there are none or the file cannot be read. A line longer than the space is cut
 * at its beginning. Allocates nothing.
 */
size_t tail_read(int log_fd, off_t start, char text[TAIL_SIZE]);
