/* SPDX-License-Identifier: MIT */
/* The processes of an attempt that is parked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct park_process {
    pid_t pid;
    uint64_t start;
    int state;       // enum cuda_state, as last known
    bool is_touched; // the driver was asked to lock it, or has saved it
    bool is_seen;    // by the latest listing
    bool has_uvm;    // it had the driver's memory manager open: it has initialized CUDA, or was forked by one
};

struct park_tree {
    const char *cgroup; // directory of the step's cgroup; NULL: the descendants of init
    pid_t init_pid;     // the user's init, which is never stopped: it records how the job ends
    struct park_process *processes;
    size_t count;
};

/* Adds processes that are new, and removes those that have ended. True if there is a new one. */
bool park_tree_list(struct park_tree *tree);
void park_tree_clear(struct park_tree *tree);

/* Stops every process, including those started meanwhile, and waits until all have stopped. Returns 0, or
 * -ETIMEDOUT with one that did not stop in time. */
int park_tree_stop(struct park_tree *tree, int64_t timeout_ms, pid_t *ret_pid);
void park_tree_continue(struct park_tree *tree);

/* True if the process has the driver's memory manager open, as after cuInit(). */
bool park_process_has_uvm(pid_t pid);
