/* SPDX-License-Identifier: MIT */
/* Counters of jobs since mgpud started, for GET /metrics. */
#pragma once

#include <stdint.h>

#include "base/histogram.h"
#include "job/park.h"
#include "job/state.h"

struct core;

struct core_counts {
    uint64_t jobs[JOB_STATES];         // current; an array counts as its waiting elements
    uint64_t ended[END_KINDS];         // jobs by end
    uint64_t failed_exits;             // of END_EXIT: those with a non-zero exit status
    uint64_t requeues[REQUEUE_CAUSES]; // attempts whose job was requeued
    uint64_t parks[PARK_CAUSES];       // jobs that were parked
    uint64_t refused_parks;            // jobs that could not be parked and continued
    uint64_t refused_returns;          // returns of parked jobs that were refused or failed
    uint64_t early_starts;             // early starts that got their GPUs
    int64_t saved_ms;                  // total time that these ran before they waited for a GPU
    int64_t parked_ms;                 // total time that jobs were parked, in completed periods
    struct histogram waits;            // of attempts: from submit or requeue to start
    struct histogram runs;             // of attempts that were executed
};

const struct core_counts *core_counts(const struct core *core);
