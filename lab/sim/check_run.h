/* SPDX-License-Identifier: MIT */
/* Runs one case through the real scheduler and reports violated properties. */
#pragma once

#include "lab/sim/check_case.h"
#include "sched/sched.h"

/* For tests of the checker: can modify an allocation before the checker sees it, a job's description for
 * the scheduler, what may be parked, and for how long, and which jobs borrow GPUs. NULL: no change. */
struct check_spoiler {
    void (*spoil)(void *arg, const int64_t *job, struct allocation *allocation);
    void (*change)(void *arg, struct sched_job_spec *spec);
    bool (*allows)(void *arg);        // parking, whatever the rules
    uint32_t park_bound, park_margin; // told to the scheduler; 0: what is checked
    bool borrows_again;               // a job may borrow GPUs however often it has started again
    void *arg;
};

/* 0, or -EPROTO with the violation and its time. `spoiler` may be NULL. */
int check_run(const struct sim_case *of, const struct check_spoiler *spoiler, struct error *err);

/* Reduces a failing case until no job, event or node can be removed. */
void check_shrink(struct sim_case *of, const struct check_spoiler *spoiler);
