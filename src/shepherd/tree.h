/* SPDX-License-Identifier: MIT */
/* The living processes of a step: found through its cgroup, or by walking the process tree. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct tree {
    int cgroup_fd;      // directory of the step's cgroup, or -1
    const char *cgroup; // its path; NULL without
    pid_t root;         // without a cgroup: descendants of this process, itself not included
    pid_t spare;        // never signalled (the user's init), 0: none
    bool is_contained;  // those in a PID namespace of their own alone, while there are some
    pid_t command;      // nor this one, for which the signal is not; 0: it is for all
    pid_t terminal;     // neither: the process that moves the bytes of its terminal, 0: none
};

/*
 * Sends the signal to each process once, through a pidfd that was checked to be one of the step. Returns how
 * many got it, or -EPERM when there are some that we may not signal. Allocates nothing.
 */
int tree_signal(const struct tree *tree, int signal);
