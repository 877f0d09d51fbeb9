/* SPDX-License-Identifier: MIT */
/* CPU time and host memory used by a step, from its cgroup or else from its processes. */
#pragma once

#include <sys/types.h>

#include "agent/usage/meter.h"

/* `cgroup` is the step's directory, or NULL: then the descendants of init are counted. `proc` is the mount
 * point of procfs. Unknown values are marked as such. */
void usage_host_read(const char *proc, const char *cgroup, pid_t init_pid, struct usage_host *ret);

/* Replaces totals of processes by the counters of a v1 group; a directory of v2 changes nothing. */
void usage_host_read_v1(const char *group, struct usage_host *ret);

/* Peak memory, which the kernel keeps after the last process has ended: of the step's cgroup, or of its v1
 * group; both may be NULL. False if neither provides it. */
bool usage_host_peak(const char *cgroup, const char *v1_group, uint64_t *ret);
