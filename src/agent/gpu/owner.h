/* SPDX-License-Identifier: MIT */
/*
 * Whose the processes on the GPUs are: who started them, what they run, in which container, and which attempt
 * they belong to. What does not change while a process lives is looked up once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/record.h"

struct gpu_owners;

/* An attempt that processes may belong to; the strings are borrowed. */
struct gpu_claim {
    uint64_t job;
    uint32_t attempt;
    const char *cgroup; // directory of one of its steps, or NULL: its processes are its init's descendants
    pid_t init_pid;
    uint64_t init_start;
    bool is_adopted; // not mgpu's own process: when the claim has gone it belongs to nobody again
};

/* `proc` is where procfs is mounted: "/proc". */
struct gpu_owners *gpu_owners_new(const char *proc);
void gpu_owners_free(struct gpu_owners *owners);

/* Completes the processes of `gpus` (struct gpu_state). One that has gone keeps start 0. */
void gpu_owners_fill(
    struct gpu_owners *owners, struct record_list *gpus, const struct gpu_claim *claims, size_t n_claims);

/* The job of the first claim that a process belongs to, 0: of none. */
uint64_t gpu_owners_job_of(
    const struct gpu_owners *owners, pid_t pid, const struct gpu_claim *claims, size_t n_claims);
