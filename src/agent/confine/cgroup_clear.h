/* SPDX-License-Identifier: MIT */
/* Makes room for controllers in a cgroup that a service manager gave away. */
#pragma once

/*
 * Moves the processes that are directly in the cgroup `path` (a directory of cgroup v2) to its child
 * "holder", so that controllers can be enabled below it: the kernel refuses that for a cgroup with processes
 * of its own. Returns 0 when none is left there, else a negative errno; what was moved stays moved.
 */
int cgroup_clear(const char *path);
