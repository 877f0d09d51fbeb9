/* SPDX-License-Identifier: MIT */
/*
 * The program nvidia-cuda-mps-control: a control daemon of one GPU, and the commands to one. These functions
 * never block: the program may hang.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define MPS_CONTROL     "nvidia-cuda-mps-control"
#define MPS_SERVERS_MAX 8U // of one daemon

/* A control daemon: the paths of its sockets and its log, and its GPU. */
struct mps_place {
    const char *program;   // path
    const char *directory; // CUDA_MPS_PIPE_DIRECTORY
    const char *log;       // CUDA_MPS_LOG_DIRECTORY
    const char *uuid;      // its only GPU, which its clients see as device 0
};

/* The limits of each client of a daemon. */
struct mps_limits {
    uint64_t bytes;
    uint32_t percent;
};

/* Starts a daemon in the cgroup directory `cgroup_fd`, -1: that of this process. Returns its pid or a
 * negative errno; the caller owns *ret_pidfd. */
pid_t mps_control_start(const struct mps_place *place, int cgroup_fd, int *ret_pidfd);

/*
 * Starts a process that sends these commands, one per line, to the daemon. Its output can be read
 * from the socket *ret_output. The caller owns both descriptors.
 */
pid_t mps_control_send(const struct mps_place *place, const char *commands, int *ret_pidfd, int *ret_output);

/* The commands that set the limits, for future and running servers. The caller frees them. */
char *mps_control_commands(const struct mps_limits *limits, const pid_t *servers, size_t n_servers);

/* 0 if the commands were executed. -EIO with the program's message: it refused. */
int mps_control_judge(int status, int output, struct error *err);

/* The servers that a daemon has started, at most MPS_SERVERS_MAX; returns their number. */
size_t mps_control_servers(const char *proc, pid_t daemon, pid_t servers[MPS_SERVERS_MAX]);
