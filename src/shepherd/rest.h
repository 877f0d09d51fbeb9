/* SPDX-License-Identifier: MIT */
/* What the command left running, without a cgroup: only the init can find these processes, because all
 * orphans are its children. */
#pragma once

#include <stdbool.h>

#define REST_MS 100 // for what is leaving by itself: a tee(1) that reads the last lines, a helper of Python

/*
 * In the init, after the end of the command: returns when no child is left. In a stop they have what is left
 * of the grace period, at whose end the shepherd kills them; otherwise REST_MS, and the names of those killed
 * are written to the status file. True if some outlived the command in a stop.
 */
bool rest_end(int status_fd);
