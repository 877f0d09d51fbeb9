/* SPDX-License-Identifier: MIT */
/* CPU time and memory of the host that a step uses, from its cgroup or else from its processes. */
#pragma once

#include <sys/types.h>

#include "agent/usage/meter.h"

/* `cgroup` is the step's directory, or NULL: then what descends from the init is counted. `proc` is where
 * procfs is mounted. What cannot be known is said to be so. */
void usage_host_read(const char *proc, const char *cgroup, pid_t init_pid, struct usage_host *ret);

/* What a v1 group counted is better than what was added up; a directory of v2 changes nothing. */
void usage_host_read_v1(const char *group, struct usage_host *ret);

/* The most memory that was ever in use, which the kernel still knows when the last process has gone: of the
 * step's cgroup, or of its v1 group; both may be NULL. False when neither tells. */
bool usage_host_peak(const char *cgroup, const char *v1_group, uint64_t *ret);
