/* SPDX-License-Identifier: MIT */
/* Processes that the command left running, without a cgroup: only the init can find them, because all orphans
 * become its children. */
#pragma once

#include <stdbool.h>

#define REST_MS 100 // for processes about to exit: a tee(1) that reads the last lines, a helper of Python

/*
 * Called in the init after the end of the command; returns when no child is left. In a stop, the children
 * have the rest of the grace period, after which the shepherd kills them. Otherwise they have REST_MS, and
 * the names of those killed are written to the status file. True if some outlived the command in a stop.
 */
bool rest_end(int status_fd);
