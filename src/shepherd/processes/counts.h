/* SPDX-License-Identifier: MIT */
/* The kernel's counters at the attempt's limits. They are in files that outlive all processes, so an adopting
 * shepherd reads the same values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/launch.h"

#define PROC_VMSTAT "/proc/vmstat"

struct counts {
    uint64_t oom_kills;      // processes of the job killed by the OOM killer
    bool is_group_killed;    // all of them were killed together
    bool is_at_limit;        // the job's own limit was reached
    uint64_t memory_peak;    // bytes; 0: unknown
    uint64_t node_oom_kills; // of the whole node while the step ran, if the job's own are not counted
    uint64_t refused_forks;  // forks refused at the job's limit of processes
};

/* Values that cannot be read stay 0. Allocates nothing. */
void counts_read(const struct launch_spec *spec, struct counts *ret);

/* The number of processes on the node killed by the OOM killer since boot, from /proc/vmstat; -1: unknown.
 * Allocates nothing. */
int64_t counts_node_oom_kills(const char *vmstat);

/* The same, up to a second old, for a shepherd that serves short steps one after the other. */
int64_t counts_node_oom_kills_before(const char *vmstat, int64_t boot_ms);

/* Why the kernel killed the job: "used more than its 2 GiB of host memory (-M), peak 2.0 GiB". */
void counts_describe_memory(
    const struct counts *counts, const struct launch_spec *spec, char *text, size_t size);

/* A remark about limits for other kinds of ends; empty if there is none. */
void counts_describe_rest(
    const struct counts *counts, const struct launch_spec *spec, char *text, size_t size);
