/* SPDX-License-Identifier: MIT */
/* Facts about a process not started by mgpu, from the kernel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

struct process_facts {
    pid_t pid;
    uint64_t start;
    uint32_t uid, gid;      // real ids: which users may send it signals
    struct strings command; // escaped words; at least one
};

/*
 * Reads the facts of the process with this pid and, if not 0, this start time. All facts are of the same
 * process, even if the pid is reused meanwhile. -ESRCH: it does not exist (any more); -EINVAL: a thread, not
 * a process.
 */
int process_facts_read(pid_t pid, uint64_t start, struct process_facts *ret, struct error *err);
void process_facts_clear(struct process_facts *facts);

/* Its real user and group; false if it has ended. */
bool process_facts_owner(pid_t pid, uint32_t *ret_uid, uint32_t *ret_gid);

/* True if `pid` is `ancestor` or one of its descendants. */
bool process_facts_is_below(pid_t pid, pid_t ancestor);
