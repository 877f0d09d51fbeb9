/* SPDX-License-Identifier: MIT */
/*
 * What an agent and its fork server say to each other over a SOCK_SEQPACKET pair: one request, one reply.
 * Executing even a static program costs several times what copying a small running one does, and it would be
 * paid for every job.
 */
#pragma once

#include <stdint.h>

#define FORK_MAGIC    0x6d677066U
#define FORK_DIR_SIZE 1024U

/* Comes with the descriptor of the cgroup to be born in (SCM_RIGHTS), or without one. */
struct fork_request {
    uint32_t magic;
    uint32_t is_adopter;
    char spool_dir[FORK_DIR_SIZE]; // terminated
};

/* Comes with a pidfd of the new shepherd when `error` is 0. */
struct fork_reply {
    uint32_t magic;
    int32_t error; // positive errno
    int32_t pid;
};
