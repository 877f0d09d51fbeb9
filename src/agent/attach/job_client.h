/* SPDX-License-Identifier: MIT */
/* The process that serves one connection of the socket for jobs. */
#pragma once

#include "agent/host/job_user.h"
#include "base/spool_id.h"

enum job_client_kind {
    JOB_CLIENT_OF_JOB,
    JOB_CLIENT_OUTSIDE, // the peer belongs to no job
    JOB_CLIENT_CROWDED, // its job, or the node, has too many connections
};

struct job_client {
    enum job_client_kind kind;
    struct spool_id id; // of the attempt
    uint32_t uid;       // of the peer
    const char *link_path;
    const struct job_users *users;
};

/* Serves the connection until one side or the job ends. The working directory is the spool. Returns the exit
 * status of the process. */
int job_client_serve(const struct job_client *client, int fd);
