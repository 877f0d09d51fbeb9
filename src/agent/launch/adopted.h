/* SPDX-License-Identifier: MIT */
/*
 * Adopted processes: an attempt that starts no process, but reserves GPUs for one that mgpu did not start,
 * while it lives. Its spool entry is like any other, but without a shepherd: the agent itself watches the
 * process and writes what a shepherd would have written, so a new agent continues where the old one stopped.
 *
 *      spool entry: lease, spec ──begin──> started, verdict go ──process ended, or released──> exit
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "job/state.h"
#include "wire/message.h"

/* Writes the entry `dirfd`: `lease`, then `spec`. */
int adopted_stage(int dirfd, const struct message_launch *launch, const struct job_spec *spec);

/* True if the entry is that of an adopted process. */
bool adopted_is(int dirfd);

/* True while its process has not ended; a zombie has. */
bool adopted_is_alive(int dirfd);

/* Opens the process, checks that it still belongs to its owner, and decides "go"; otherwise writes its end.
 * Returns 1 if the entry has changed. */
int adopted_begin(int dirfd, struct error *err);

/* Writes `exit`. END_RELEASED: the process has ended. END_CANCELLED: it is released and continues. No effect
 * if there is an exit record. Returns 1. `err` may be NULL. */
int adopted_end(int dirfd, enum job_end end, struct error *err);

/* The process, and its owner at the adoption. The caller owns the pidfd. */
struct adopted_process {
    int pidfd;
    pid_t pid;
    uid_t uid;
};

/* -ESRCH if it has ended, -EPERM if it now belongs to another user. */
int adopted_open(int dirfd, struct adopted_process *ret);

/* True if it still belongs to its owner: only then may it be signalled. */
bool adopted_is_own(const struct adopted_process *process);
