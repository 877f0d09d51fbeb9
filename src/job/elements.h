/* SPDX-License-Identifier: MIT */
/* The number of elements of an array that wait, run and have ended, from the array's own record. Pure. */
#pragma once

#include <stdint.h>

#include "job/job.h"

/* `all` is the sum of the others. */
struct job_elements {
    uint32_t all;
    uint32_t waiting; // part of the array's record: not separate jobs yet
    uint32_t open;    // separate jobs that have not ended
    uint32_t done;    // exit 0
    uint32_t failed;
    uint32_t cancelled; // also those that never became separate jobs, because their array was cancelled
};

/* All zero for a job that is no array. */
struct job_elements job_elements(const struct job *job);

static inline uint32_t job_elements_ended(const struct job_elements *elements)
{
    return elements->done + elements->failed + elements->cancelled;
}
