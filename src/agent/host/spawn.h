/* SPDX-License-Identifier: MIT */
/* Starts a program isolated from this one: its own session, no inherited descriptors, a fixed environment. */
#pragma once

#include <sys/types.h>

/*
 * Executes `path` in the cgroup `cgroup_fd` (-1: that of this process). Standard input and output are
 * /dev/null, standard error is inherited, all signals are blocked. Returns 0 with its pid and a pidfd that
 * the caller owns, or a negative errno, also if the exec failed.
 */
int spawn_program(const char *path, char *const *argv, char *const *environment, int cgroup_fd,
    pid_t *ret_pid, int *ret_pidfd);
