/* SPDX-License-Identifier: MIT */
/* External usage of GPUs, and when it keeps new jobs away. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/external.h"
#include "job/gpu_health.h"

/* Thresholds, in percent and bytes. */
struct external_settings {
    enum external_policy policy; // of GPUs without their own policy
    uint64_t external_memory;    // bytes of one process; used if external_part is 0
    uint32_t external_part;      // percent of the GPU's memory, of all external processes together
    uint32_t external_load;      // percent of the GPU, while no job is on it
    uint32_t share_memory;       // percent of its memory: a shared GPU accepts no further job
    uint32_t share_load;         // percent
};

/* Results of the samples of one GPU. */
struct gpu_watch {
    char *uuid;
    bool has_external;       // any external process
    bool is_used_externally; // an external process above the thresholds
    bool is_crowded;         // shared, and too full or too busy for another job
    uint32_t adoptee;    // pid that a waiting adoption is for, if it is the only external process above the
                         // thresholds; 0: none
    bool is_unclean;     // remains of a job are still on it
    bool is_refused;     // its mode admits no job
    bool is_one_process; // its mode admits one process
    uint64_t external_memory; // of all external processes, rounded up; 0 if none is above the thresholds
    /* Consecutive samples. */
    uint32_t alone;    // without any external process
    uint32_t calm;     // without an external process above the thresholds
    uint32_t unknown;  // without a list of processes
    uint32_t loaded;   // with a load and no job
    uint32_t less;     // with less memory than external_memory
    uint32_t contrary; // that contradict is_crowded
    uint64_t most;     // maximum memory in the samples counted by `less`
    struct gpu_health health;
};
