/* SPDX-License-Identifier: MIT */
/* The live processes of a step, from its cgroup or the process tree. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/processes/roll.h"

struct tree {
    int cgroup_fd;      // directory of the step's cgroup, or -1
    const char *cgroup; // its path; NULL without a cgroup
    pid_t root;         // without a cgroup: descendants of this process, excluding itself
    pid_t spare;        // never signalled: the user's init; 0: none
    bool is_contained;  // only those in their own PID namespace, if there are any
    pid_t command;      // excluded, unless the signal is for the command itself; 0: none
    pid_t terminal; // also never signalled: the process that moves the bytes of the step's terminal; 0: none
    uint32_t roles; // only processes of these roles in the last survey; 0: all
    struct roll *roll; // receives the names of the signalled processes, or NULL
};

/*
 * Sends the signal to each process once, through a pidfd that was verified to belong to the step. Returns the
 * number of processes signalled, or -EPERM if the caller may not signal some. Allocates nothing.
 */
int tree_signal(const struct tree *tree, int signal);

/* Surveys all processes that tree_signal() would signal, for roles_of(). */
void tree_survey(const struct tree *tree, int signal);

/* Adds the names of the processes to `roll`. */
void tree_list(const struct tree *tree, struct roll *roll);
