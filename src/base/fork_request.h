/* SPDX-License-Identifier: MIT */
/*
 * The protocol between an agent and its fork server: one request and one reply over a SOCK_SEQPACKET pair.
 * Executing even a static program costs several times as much as forking a small running one, and that cost
 * would be paid for every job.
 *
 * A kept shepherd serves one step after the other. It shares another SOCK_SEQPACKET pair with the agent:
 * after a step, once it has released everything, it sends SHEPHERD_IDLE and receives its next request there.
 * Otherwise it exits. In both cases the agent's end becomes readable.
 */
#pragma once

#include <stdint.h>

#define FORK_MAGIC    0x6d677067U
#define SHEPHERD_IDLE 'i'
#define FORK_DIR_SIZE 1024U

/* Carries the descriptor of the cgroup to start in (SCM_RIGHTS), or none. */
struct fork_request {
    uint32_t magic;
    uint32_t is_adopter;
    uint32_t is_kept;              // the shepherd may serve further steps
    char spool_dir[FORK_DIR_SIZE]; // terminated
};

/* Carries a pidfd of the new shepherd when `error` is 0. If the request had `is_kept`, a second reply follows
 * with the agent's end of the pair, because a packet carries one descriptor. */
struct fork_reply {
    uint32_t magic;
    int32_t error; // positive errno
    int32_t pid;
};
