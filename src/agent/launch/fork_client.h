/* SPDX-License-Identifier: MIT */
/* The client of the fork server: starts shepherds without an exec for each (shepherd/fork_server.h). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct fork_client;

/* Starts the server. NULL on failure: shepherds are then executed one by one, which is only slower. */
struct fork_client *fork_client_open(const char *shepherd);

/* Ends the server and the idle shepherds; shepherds with a step continue. NULL is allowed. */
void fork_client_close(struct fork_client *client);

/*
 * Gives the spool directory to an idle shepherd, or starts one in the cgroup `cgroup_fd` unless it is -1.
 * Returns 0 with its pid and a descriptor that the caller owns, and that becomes readable when the shepherd
 * has finished the step or is dead; a negative errno of the clone; -EPIPE if the server has ended or does not
 * respond: close it then.
 */
int fork_client_start(struct fork_client *client, const char *spool_dir, bool is_adopter, int cgroup_fd,
    pid_t *ret_pid, int *ret_end_fd);

/* The descriptor of a step's end has become readable: its shepherd may get another step. */
void fork_client_note_end(struct fork_client *client, pid_t pid);
