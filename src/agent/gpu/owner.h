/* SPDX-License-Identifier: MIT */
/*
 * The owners of processes on GPUs: user, command, container, and attempt. Facts that do not change while a
 * process lives are looked up once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/record.h"

struct gpu_owners;

/* An attempt that may own processes; the strings are borrowed. */
struct gpu_claim {
    uint64_t job;
    uint32_t attempt;
    const char
        *cgroup; // directory of one of its steps, or NULL: its processes are the descendants of its init
    pid_t init_pid;
    uint64_t init_start;
    bool is_adopted; // not started by mgpu: without the claim it is an external process again
};

/* `proc` is the mount point of procfs: "/proc". */
struct gpu_owners *gpu_owners_new(const char *proc);
void gpu_owners_free(struct gpu_owners *owners);

/* Completes the processes of `gpus` (struct gpu_state). A process that has ended keeps start 0. */
void gpu_owners_fill(
    struct gpu_owners *owners, struct record_list *gpus, const struct gpu_claim *claims, size_t n_claims);

/* The first matching claim; NULL: none. */
const struct gpu_claim *gpu_owners_claim_of(
    const struct gpu_owners *owners, pid_t pid, const struct gpu_claim *claims, size_t n_claims);

/* The job of the first matching claim, 0: none. */
uint64_t gpu_owners_job_of(
    const struct gpu_owners *owners, pid_t pid, const struct gpu_claim *claims, size_t n_claims);
