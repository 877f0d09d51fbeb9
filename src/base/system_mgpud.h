/* SPDX-License-Identifier: MIT */
/* How unprivileged programs find the mgpud that serves all users of this machine. */
#pragma once

#include <stdbool.h>

#define SYSTEM_RUN_DIR   "/run/mgpu"
#define SYSTEM_STATE_DIR "/var/lib/mgpu"
#define SYSTEM_SOCKET    SYSTEM_RUN_DIR "/mgpud.sock"

/* In each run directory: held by the mgpud that uses it, whose process id it holds; empty once that was
 * stopped. */
#define RUN_LOCK "mgpud.lock"

/* In the run directory of a machine that has joined: mgpud for commands in jobs (agent/attach/job_socket.h).
 */
#define JOB_SOCKET        "jobs.sock"
#define SYSTEM_JOB_SOCKET SYSTEM_RUN_DIR "/" JOB_SOCKET

/* A directory that shows that this machine has a system-wide mgpu, running or stopped, as controller or as a
 * joined node. NULL: none. */
const char *system_mgpud_trace(void);

/* True if a process listens on this unix socket. Never blocks. */
bool is_socket_answered(const char *path);
