/* SPDX-License-Identifier: MIT */
/* Jobs with a whole life at times of the test's choice. */
#pragma once

#include "store_fixture.h"

struct past_job {
    uint32_t uid, gid;
    const char *name; // NULL: "job"
    const char *node; // NULL: "node1"
    int64_t submitted_ms, started_ms, ended_ms;
    uint32_t gpus;
    uint32_t share;   // of each; 0: whole ones
    enum job_end end; // END_NONE: END_EXIT
    int32_t exit_code;
    int64_t parked_ms; // of the time between
    bool has_usage;
    uint32_t utilization_milli;
    bool is_never_started; // cancelled in the queue
};

/* Stores it and returns its id. */
uint64_t ended_add(struct fixture *fixture, const struct past_job *past);
