/* SPDX-License-Identifier: MIT */
/* The metrics of a replay. Definitions are in mgpu-sim(1) and match the reference simulator. */
#pragma once

#include "lab/sim/engine.h"
#include "lab/sim/samples.h"

#define SLOWDOWN_FLOOR_S 10.0 // minimum run time in the bounded slowdown
#define WIDTHS           4U   // 1, 2-4, 8 and more than 8 GPUs; others are only in the total

struct width_metrics {
    const char *name;
    size_t jobs;
    struct summary jct_s, wait_s;
};

struct metrics {
    size_t jobs, refused, users;
    struct summary jct_s, wait_s, slowdown;
    struct width_metrics widths[WIDTHS];
    double makespan_s;
    double utilization; // until the last submission, 0 to 1
    uint64_t preemptions, interruptions;
    double lost_gpu_s;
    uint64_t parks;     // by the rule of the scheduler
    uint64_t reclaims;  // see struct engine
    double most_parked; // likewise
    double jain, worst_user_slowdown;
    char *worst_user; // owned by the workload
    /* While jobs were waiting. */
    double waiting_s, free_gpus, free_percent, largest_gang;
    struct forecast_metrics forecasts; // count 0: none were made
    struct summary estimate_error;     // factor by which the estimate was wrong, at least 1
    /* Of this machine, not of the schedule. */
    struct summary pass_us;
    double scheduler_s, wall_s;
    size_t peak_memory_bytes;
};

void metrics_make(struct engine *engine, struct metrics *ret); // sorts the engine's pass times
