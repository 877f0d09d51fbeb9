/* SPDX-License-Identifier: MIT */
/* Finds the other mgpuds of this machine: the system-wide one, and those that allocate its GPUs. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

#define SYSTEM_RUN_DIR   "/run/mgpu"
#define SYSTEM_STATE_DIR "/var/lib/mgpu"
#define SYSTEM_SOCKET    SYSTEM_RUN_DIR "/mgpud.sock"

/* In each run directory: locked by the mgpud that uses it, and contains its process id; empty after it was
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

/* The device nodes of GPUs that this process allocates, and which of them other processes also allocate. */
struct gpu_claims {
    int *fds; // held until exit
    size_t count;
    struct strings shared; // paths
    pid_t pid;             // of one process that allocates them, root's if there is one; 0: unknown
    uid_t uid;             // if the pid is known
};

/*
 * Claims each GPU in DEVICE_DIR. A claim is an abstract socket with the number of the device in its name: any
 * user can create one, the kernel identifies its owner, and it ends with its process. It is visible within
 * one network namespace. The caller decides what to do about GPUs claimed by others: see gpu_claims_refuse().
 */
void gpu_claims_take(const char *device_dir, struct gpu_claims *ret);

/*
 * 0, with a sentence in the log if GPUs are shared; or -EBUSY. Sharing is accepted if the GPUs were named,
 * and if root shares them with another or an unknown user, who could otherwise block root's mgpud.
 */
int gpu_claims_refuse(const struct gpu_claims *claims, bool is_asked, struct error *err);

void gpu_claims_clear(struct gpu_claims *claims);
