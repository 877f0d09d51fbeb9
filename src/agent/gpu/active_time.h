/* SPDX-License-Identifier: MIT */
/*
 * How much of some time a process could have used. A GPU must not count as lost because the machine is busy:
 * time in which a thread of the helper process waited for a processor is no silence of the driver.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/process.h"

#define ACTIVE_TIME_THREADS 72U // threads observed: one for each GPU of a node, and some of the driver's
#define ACTIVE_TIME_FACTOR                                                                                   \
    8 // maximum factor by which waiting extends the time: a driver that spins competes for processors, too

struct gpu_active_time {
    pid_t pid;
    size_t count;
    struct {
        pid_t tid;
        struct process_times times;
    } threads[ACTIVE_TIME_THREADS]; // at the last call
};

/* `ms` have passed since the last call. Returns how many of them count: those in which no thread of the
 * process waited for a processor. If the kernel does not account the time of threads, all of them. */
int64_t gpu_active_time_count(struct gpu_active_time *active_time, int64_t ms);
