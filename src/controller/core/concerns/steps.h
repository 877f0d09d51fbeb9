/* SPDX-License-Identifier: MIT */
/* The steps of a job that run or wait, and whether another one has room (steps_fit.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/job.h"
#include "job/step.h"

struct step {
    struct job_step step;
    bool is_running;
    void *request;   // of its client; NULL: it is away
    int64_t away_ms; // boot clock: since when
    struct step *next;
};

/* Of one job whose attempt has begun steps or has some that wait; in the order of the requests. */
struct job_share {
    uint64_t job;
    uint32_t attempt, begun;
    struct step *first;
    struct job_share *next;
};

/* The part of a step on the job's node of this rank, or NULL. */
const struct job_step_node *steps_node_of(const struct job_step *step, uint32_t rank);

/* Is the share of `step` free on all of its nodes, in addition to the running steps of `share` (NULL: none)?
 * If so, assigns its GPUs. */
bool steps_fit(const struct job *job, const struct job_share *share, struct job_step *step);
