/* SPDX-License-Identifier: MIT */
/* What the kernel counted at the attempt's limits. It is in files that outlive every process of ours, so a
 * shepherd that adopts reads the same. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/launch.h"

#define PROC_VMSTAT "/proc/vmstat"

struct counts {
    uint64_t oom_kills;   // processes of the job that the kernel killed for want of memory
    bool is_group_killed; // it took all of them at once
    bool is_at_limit;     // the job's own limit was reached
    uint64_t memory_peak; // bytes; 0: not known
    uint64_t
        node_oom_kills; // of the whole node while the step ran, where nobody counts those of the job alone
    uint64_t refused_forks; // at its limit of processes
};

/* What cannot be read stays 0. Allocates nothing. */
void counts_read(const struct launch_spec *spec, struct counts *ret);

/* How many processes of the whole node the kernel has killed for want of memory since it started, from
 * /proc/vmstat; -1: it does not say. Allocates nothing. */
int64_t counts_node_oom_kills(const char *vmstat);

/* "used more than its 2 GiB of host memory (-M), peak 2.0 GiB": why the kernel killed the job. */
void counts_describe_memory(
    const struct counts *counts, const struct launch_spec *spec, char *text, size_t size);

/* What somebody should know who looks at an end of another kind; an empty text when there is nothing. */
void counts_describe_rest(
    const struct counts *counts, const struct launch_spec *spec, char *text, size_t size);
