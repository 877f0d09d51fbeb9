/* SPDX-License-Identifier: MIT */
/* Prepares a cgroup delegated by a service manager for enabling controllers. */
#pragma once

/*
 * Moves the processes in the cgroup `path` itself (a directory of cgroup v2) to its child "holder", so that
 * controllers can be enabled for children; the kernel refuses this for a cgroup with processes. Returns 0 if
 * none is left, else a negative errno; processes already moved stay there.
 */
int cgroup_clear(const char *path);
