/* SPDX-License-Identifier: MIT */
/* What GPUs are used for besides their jobs, and when that keeps new jobs away. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/external.h"
#include "job/gpu_health.h"

/* Percentages and bytes above which something counts. */
struct external_settings {
    enum external_policy policy; // of GPUs without one of their own
    uint64_t external_memory;    // bytes of one process
    uint32_t external_load;      // per cent of the GPU, while no job is there
    uint32_t share_memory;       // per cent of its memory: a shared GPU takes no further job
    uint32_t share_load;         // per cent
};

/* What the samples of one GPU have shown so far. */
struct gpu_watch {
    char *uuid;
    bool is_used_externally; // a process that is no job's counts there
    bool is_crowded;         // shared, and too full or too busy for one more
    uint32_t adoptee;    // pid for which an adoption waits, when nobody else that counts is there; 0: none
    bool is_unclean;     // what a job left there is not gone yet
    bool is_refused;     // its mode keeps every job away
    bool is_one_process; // its mode lets one process in
    uint64_t external_memory; // of all such processes, rounded up; 0 unless one counts
    /* Samples in a row. */
    uint32_t calm;     // without anybody that counts
    uint32_t unknown;  // without a list of processes
    uint32_t loaded;   // with a load and no job
    uint32_t less;     // with less memory than external_memory
    uint32_t contrary; // that deny is_crowded
    uint64_t most;     // memory in the samples counted by `less`
    struct gpu_health health;
};
