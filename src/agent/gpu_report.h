/* SPDX-License-Identifier: MIT */
/* What the GPU helper process tells the agent, once a second. */
#pragma once

#include <stdint.h>

#include "wire/message.h"

struct gpu_report {
    char *backend;           // "nvml", "sim", "none"
    uint32_t is_on;          // 1: the backend works
    uint32_t is_final;       // 1: nothing will ever change, no further report follows
    char *text;              // what it means, in words
    char *fix;               // what to do when it is off, or NULL
    struct record_list gpus; // struct gpu_state
};

extern const struct record_type gpu_report_record;
