/* SPDX-License-Identifier: MIT */
/* What has happened to jobs since this mgpud started, counted for GET /metrics. */
#pragma once

#include <stdint.h>

#include "base/histogram.h"
#include "job/state.h"

struct core;

struct core_counts {
    uint64_t jobs[JOB_STATES];         // now; an array counts as its elements that wait
    uint64_t ended[END_KINDS];         // jobs, by how they ended
    uint64_t failed_exits;             // of END_EXIT: those with another exit status than 0
    uint64_t requeues[REQUEUE_CAUSES]; // attempts whose job went back to the queue
    struct histogram waits;            // of attempts: from submit or requeue to start
    struct histogram runs;             // of attempts that were executed
};

const struct core_counts *core_counts(const struct core *core);
