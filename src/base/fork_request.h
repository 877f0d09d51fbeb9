/* SPDX-License-Identifier: MIT */
/*
 * The protocol between an agent and its fork server: one request and one reply over a SOCK_SEQPACKET pair.
 * Executing even a static program costs several times as much as forking a small running one, and that cost
 * would be paid for every job.
 */
#pragma once

#include <stdint.h>

#define FORK_MAGIC    0x6d677066U
#define FORK_DIR_SIZE 1024U

/* Carries the descriptor of the cgroup to start in (SCM_RIGHTS), or none. */
struct fork_request {
    uint32_t magic;
    uint32_t is_adopter;
    char spool_dir[FORK_DIR_SIZE]; // terminated
};

/* Carries a pidfd of the new shepherd when `error` is 0. */
struct fork_reply {
    uint32_t magic;
    int32_t error; // positive errno
    int32_t pid;
};
