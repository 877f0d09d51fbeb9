/* SPDX-License-Identifier: MIT */
/* A child of the agent becomes a process of a running job: in its cgroup, as its user. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "agent/host/job_user.h"
#include "base/spool_id.h"

struct job_entry {
    uint64_t token; // of the attempt
    uid_t uid;      // of the job
    int init_fd;    // pidfd of the parent of the job's command; the caller closes it
};

/* Reads everything from the spool. `token`: that of the attempt; NULL: any attempt with this id. -EALREADY if
 * it is not running. */
int job_entry_enter(int spool_fd, const struct job_users *users, const struct spool_id *id,
    const uint64_t *token, struct job_entry *ret, struct error *err);
