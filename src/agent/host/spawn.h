/* SPDX-License-Identifier: MIT */
/* Starts a program that shares nothing with us: own session, no descriptors, a fixed environment. */
#pragma once

#include <sys/types.h>

/*
 * Executes `path`, born in the cgroup behind `cgroup_fd` (-1: in ours). Its stdin and stdout lead to
 * /dev/null, its stderr is ours, all signals are blocked. Returns 0 with its pid and a pidfd that the caller
 * owns, or a negative errno, also when it could not be executed.
 */
int spawn_program(const char *path, char *const *argv, char *const *environment, int cgroup_fd,
    pid_t *ret_pid, int *ret_pidfd);
