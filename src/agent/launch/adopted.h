/* SPDX-License-Identifier: MIT */
/*
 * An attempt that runs nothing: GPUs booked for a process that mgpu did not start, for as long as it lives.
 * Its spool entry goes the way of every other, without a shepherd: the agent itself watches the process and
 * writes what a shepherd would have written, so that a new agent goes on where the old one was.
 *
 *      spool entry: lease, spec ──begin──> started, verdict go ──process over, or released──> exit
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "job/state.h"
#include "wire/message.h"

/* Writes the entry `dirfd`: `lease`, and `spec` last. */
int adopted_stage(int dirfd, const struct message_launch *launch, const struct job_spec *spec);

/* Is the entry that of an adopted process? */
bool adopted_is(int dirfd);

/* Its process has not ended; one that waits to be reaped has. */
bool adopted_is_alive(int dirfd);

/* Opens the process, makes sure that it still is its owner's, and settles "go"; or writes how it is over.
 * Returns 1 when there is something new to see in the entry. */
int adopted_begin(int dirfd, struct error *err);

/* Writes `exit`. END_RELEASED: the process is over. END_CANCELLED: it is let go and lives on. Harmless when
 * there is an exit already. Returns 1. `err` may be NULL. */
int adopted_end(int dirfd, enum job_end end, struct error *err);

/* The process, and its owner at the time of adoption. The caller owns the pidfd. */
struct adopted_process {
    int pidfd;
    pid_t pid;
    uid_t uid;
};

/* -ESRCH when it is over, -EPERM when it is another user's by now. */
int adopted_open(int dirfd, struct adopted_process *ret);

/* It is still its owner's: only then may it be signalled. */
bool adopted_is_own(const struct adopted_process *process);
