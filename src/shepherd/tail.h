/* SPDX-License-Identifier: MIT */
/* The last lines of the output of a command that failed: they say why, and go into its record. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "job/launch.h"

#define TAIL_SIZE (USAGE_TAIL_MAX + 1U)

/*
 * Reads the last whole lines of what the open file `log_fd` got behind the offset `start`, as the user who
 * owns it. Returns the length of `text`; 0 when there is nothing or the file cannot be read. A line that is
 * longer than the space is cut at its start. Allocates nothing.
 */
size_t tail_read(int log_fd, off_t start, char text[TAIL_SIZE]);
