/* SPDX-License-Identifier: MIT */
/* What the GPU helper process tells the agent, once a second. */
#pragma once

#include <stdint.h>

#include "wire/message.h"

#define NODE_PROCESSES_MAX                                                                                   \
    1024U // of all GPUs together: keeps a report and the message made of it within bounds

struct gpu_report {
    char *backend;           // "nvml", "sim", "none"
    uint32_t is_on;          // 1: the backend works, even if none of its GPUs does
    uint32_t is_final;       // 1: there is no backend, and the process says no more
    char *text;              // what it means, in words
    char *fix;               // what to do when it is off, or NULL
    struct record_list gpus; // struct gpu_state
    uint32_t is_sample;      // 0: it came in between, and only tells whether the GPUs are clean
};

extern const struct record_type gpu_report_record;

/* Largest memory first, then by pid. */
void gpu_processes_sort(struct record_list *processes);

/* Lets go of all but the first `max`. */
void gpu_processes_cut(struct record_list *processes, size_t max);

/* Cuts the longest lists of these GPUs (struct gpu_state) until all have NODE_PROCESSES_MAX together. */
void gpu_processes_share(struct record_list *gpus);
