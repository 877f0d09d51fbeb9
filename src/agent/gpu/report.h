/* SPDX-License-Identifier: MIT */
/* The report of the GPU helper process to the agent, once a second. */
#pragma once

#include <stdint.h>

#include "wire/message.h"

#define NODE_PROCESSES_MAX                                                                                   \
    1024U // of all GPUs together: bounds the size of a report and of the resulting message

struct gpu_report {
    char *backend;           // "nvml", "sim", "none"
    char *driver;            // its version; NULL: not known
    uint32_t is_on;          // 1: the backend works, even if none of its GPUs does
    uint32_t is_final;       // 1: there is no backend, and no further report follows
    char *text;              // its effect, as text
    char *fix;               // how to enable it, or NULL
    struct record_list gpus; // struct gpu_state
    uint32_t is_sample;      // 0: sent between samples, and only shows whether the GPUs are clean
    uint32_t is_outdated;    // 1: there are other GPUs now, which another helper finds
};

extern const struct record_type gpu_report_record;

/* Clears numbers that only this node uses: a sample that differs in them alone counts as unchanged. */
void gpu_report_forget_answers(const struct record_list *gpus);

/* Largest memory first, then by pid. */
void gpu_processes_sort(struct record_list *processes);

/* Removes all but the first `max`. */
void gpu_processes_cut(struct record_list *processes, size_t max);

/* Shortens the longest lists of these GPUs (struct gpu_state) until their total is NODE_PROCESSES_MAX. */
void gpu_processes_share(struct record_list *gpus);
