/* SPDX-License-Identifier: MIT */
/* Connects to a port on behalf of a job: as its user, who must also own the listening socket. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Connects to TCP port `port` of this machine, or with port 0 to the unix socket `path`. This process already
 * runs as the job's user `uid`. A descriptor that does not block, or
 *   -ECONNREFUSED  nothing listens there
 *   -EPERM         another user listens there, who would receive what is meant for the job
 * `job` is for messages.
 */
int port_connect(uint64_t job, uid_t uid, uint32_t port, const char *path, struct error *err);
