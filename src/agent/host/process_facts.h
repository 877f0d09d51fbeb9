/* SPDX-License-Identifier: MIT */
/* What the kernel tells of a process that somebody else started. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

struct process_facts {
    pid_t pid;
    uint64_t start;
    uint32_t uid, gid;      // real ones: those that may send it signals
    struct strings command; // words as they may be shown; at least one
};

/*
 * Looks at the process of this pid; `start` not 0: and only that one. All facts are of one process, also when
 * its pid changes hands meanwhile. -ESRCH: there is none (any more); -EINVAL: a thread is no process.
 */
int process_facts_read(pid_t pid, uint64_t start, struct process_facts *ret, struct error *err);
void process_facts_clear(struct process_facts *facts);

/* Its real user and group; false when it is gone. */
bool process_facts_owner(pid_t pid, uint32_t *ret_uid, uint32_t *ret_gid);

/* `pid` is `ancestor` or descends from it. */
bool process_facts_is_below(pid_t pid, pid_t ancestor);
