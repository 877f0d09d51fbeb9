/* SPDX-License-Identifier: MIT */
/* The agent's side of the fork server: starts shepherds without an exec for each (shepherd/fork_server.h). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct fork_client;

/* Starts the server. NULL when that fails: shepherds are then executed one by one, which is slower and else
 * the same. */
struct fork_client *fork_client_open(const char *shepherd);

/* Ends the server; shepherds go on. Safe on NULL. */
void fork_client_close(struct fork_client *client);

/*
 * Starts a shepherd for the spool directory, in the cgroup behind `cgroup_fd` unless it is -1. 0 with its pid
 * and a pidfd that is the caller's; a negative errno of the clone; -EPIPE when the server is gone or does not
 * answer: close it then.
 */
int fork_client_start(struct fork_client *client, const char *spool_dir, bool is_adopter, int cgroup_fd,
    pid_t *ret_pid, int *ret_pidfd);
